#include "cgroup/mountinfo.h"

#include <errno.h>
#include <string.h>

static bool parse_field(struct cursor *s, struct span *ret) {
  return parse_part(s, ' ', ret) && ret->len > 0;
}

static bool skip_fields(struct cursor *s, unsigned n) {
  struct span skipped;

  while (n > 0 && parse_field(s, &skipped))
    n--;
  return n == 0;
}

/* Optional fields, of any number, end with a hyphen. */
static bool skip_optional_fields(struct cursor *s) {
  struct span field;

  while (parse_field(s, &field))
    if (field.len == 1 && *field.text == '-')
      return true;
  return false;
}

/*
 * 30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw
 *
 * The fields are: id, parent, device, root, mount point, options, optional
 * fields, a hyphen, type, source, options of the file system.
 */
int mountinfo_parse_line(struct span line, struct mountinfo *ret) {
  struct cursor s = cursor_begin(line.text, line.len);
  struct mountinfo m;

  if (!skip_fields(&s, 3) || !parse_field(&s, &m.root) ||
      !parse_field(&s, &m.mount_point) || !skip_fields(&s, 1) ||
      !skip_optional_fields(&s) || !parse_field(&s, &m.type) ||
      !skip_fields(&s, 1) || !parse_field(&s, &m.super_options))
    return -EBADMSG;
  *ret = m;
  return 0;
}

static bool is_octal(char c) { return c >= '0' && c <= '7'; }

static bool is_encoded(const char *at, const char *end) {
  return end - at >= 4 && at[0] == '\\' && is_octal(at[1]) && is_octal(at[2]) &&
         is_octal(at[3]);
}

static char decode(const char *code) {
  return (char)((code[1] - '0') << 6 | (code[2] - '0') << 3 | (code[3] - '0'));
}

bool mountinfo_decode(struct span path, char *ret, size_t size) {
  const char *at = path.text, *end = path.text + path.len;
  size_t len = 0;

  while (at < end && len + 1 < size) {
    bool is_code = is_encoded(at, end);

    if (is_code)
      ret[len] = decode(at);
    else
      ret[len] = *at;
    at += is_code ? 4 : 1;
    if (ret[len++] == '\0')
      return false;
  }
  if (at < end || len >= size)
    return false;
  ret[len] = '\0';
  return true;
}
