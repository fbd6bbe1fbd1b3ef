#include <smaps/name.h>

#include <stdio.h>
#include <string.h>

#define KEPT_OF_LONG 110

static bool is_printable(unsigned char c) { return c >= 0x20 && c < 0x7f; }

/* FNV-1a, 64 bits: short, well mixed, and no secret is needed, because two
 * names that collide on purpose only end up in one group of the attacker's. */
static void add_byte(struct name *n, char c) {
  if (n->len == 0)
    n->hash = UINT64_C(0xcbf29ce484222325);
  n->hash = (n->hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
  if (n->len < NAME_SIZE - 1)
    n->text[n->len] = c;
  n->len++;
}

static void add_hex(struct name *n, unsigned char c) {
  static const char digit[] = "0123456789abcdef";

  add_byte(n, '\\');
  add_byte(n, 'x');
  add_byte(n, digit[c >> 4]);
  add_byte(n, digit[c & 15]);
}

void name_add(struct name *n, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];

    if (c == '/' && n->len == 0)
      continue;
    if (c == '/')
      add_byte(n, '_');
    else if (is_printable(c))
      add_byte(n, (char)c);
    else
      add_hex(n, c);
  }
}

bool name_finish(struct name *n) {
  if (n->len == 0)
    return false;
  if (n->len < NAME_SIZE)
    n->text[n->len] = '\0';
  else
    snprintf(n->text + KEPT_OF_LONG, NAME_SIZE - KEPT_OF_LONG, "~%016llx",
             (unsigned long long)n->hash);
  return true;
}

const char *name_escape(const char *text, size_t len, char *ret, size_t size) {
  size_t at = 0;

  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    bool is_plain = is_printable(c) && c != '"' && c != '\\';
    size_t need = is_plain ? 1 : 4;
    /* Room for "..." stays free until the last byte is known to fit. */
    size_t reserve = i + 1 == len ? 1 : 4;

    if (at + need + reserve > size) {
      strcpy(ret + at, "...");
      return ret;
    }
    if (is_plain)
      ret[at] = (char)c;
    else
      snprintf(ret + at, 5, "\\x%02x", c);
    at += need;
  }
  ret[at] = '\0';
  return ret;
}
