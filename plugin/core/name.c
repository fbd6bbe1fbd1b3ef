#include <smaps/name.h>

#include <stdio.h>
#include <string.h>

#define KEPT_OF_LONG 110
#define ELLIPSIS "..."

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

static bool is_plain(unsigned char c) {
  return is_printable(c) && c != '"' && c != '\\';
}

static size_t escaped_length(const char *text, size_t len) {
  size_t length = 0;

  for (size_t i = 0; i < len; i++)
    length += is_plain((unsigned char)text[i]) ? 1 : 4;
  return length;
}

const char *name_escape(const char *text, size_t len, char *ret, size_t size) {
  bool fits = escaped_length(text, len) < size;
  size_t room = fits ? size - 1 : size - sizeof(ELLIPSIS);
  size_t at = 0;

  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];

    if (at + (is_plain(c) ? 1 : 4) > room)
      break;
    if (is_plain(c))
      ret[at++] = (char)c;
    else
      at += (size_t)sprintf(ret + at, "\\x%02x", c);
  }
  strcpy(ret + at, fits ? "" : ELLIPSIS);
  return ret;
}
