#include <smaps/group_name.h>

#include <stdio.h>
#include <string.h>

#define KEPT_OF_LONG 110

static bool is_printable(unsigned char c) { return c >= 0x20 && c < 0x7f; }

/* FNV-1a, 64 bits. It needs no secret: names that collide on purpose only share
 * a group of the attacker's own processes. */
static void add_byte(struct group_name *n, char c) {
  if (n->len == 0)
    n->hash = UINT64_C(0xcbf29ce484222325);
  n->hash = (n->hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
  if (n->len < GROUP_NAME_SIZE - 1)
    n->text[n->len] = c;
  n->len++;
}

static void add_hex(struct group_name *n, unsigned char c) {
  static const char digit[] = "0123456789abcdef";

  add_byte(n, '\\');
  add_byte(n, 'x');
  add_byte(n, digit[c >> 4]);
  add_byte(n, digit[c & 15]);
}

void group_name_add(struct group_name *n, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];

    if (c == '/' && !n->is_begun)
      ;
    else if (c == '/')
      add_byte(n, '_');
    else if (is_printable(c))
      add_byte(n, (char)c);
    else
      add_hex(n, c);
    n->is_begun = true;
  }
}

bool group_name_finish(struct group_name *n) {
  if (n->len == 0)
    return false;
  if (n->len < GROUP_NAME_SIZE)
    n->text[n->len] = '\0';
  else
    snprintf(n->text + KEPT_OF_LONG, GROUP_NAME_SIZE - KEPT_OF_LONG, "~%016llx",
             (unsigned long long)n->hash);
  return strcmp(n->text, GROUP_NAME_OF_HOST) != 0;
}
