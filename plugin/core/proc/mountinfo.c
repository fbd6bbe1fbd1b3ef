/* SPDX-License-Identifier: MIT */
#include "proc/mountinfo.h"

/* The kernel escapes blanks in paths, and the fields before the type that it
 * may leave out end with a "-" (Documentation/filesystems/proc.rst). */
static bool parse_type(struct cursor *s, struct span *ret) {
  struct span field;

  while (parse_part(s, ' ', &field))
    if (span_is(field, "-"))
      return parse_part(s, ' ', ret);
  return false;
}

bool mountinfo_next(struct cursor *s, struct mount *ret) {
  uint32_t id, parent;
  struct mount mount;
  struct cursor line;
  struct span text;

  if (!parse_line(s, &text))
    return false;
  line = cursor_begin(text.text, text.len);
  if (!parse_u32(&line, &id) || !parse_char(&line, ' ') ||
      !parse_u32(&line, &parent) || !parse_char(&line, ' ') ||
      !parse_u32(&line, &mount.major) || !parse_char(&line, ':') ||
      !parse_u32(&line, &mount.minor) || !parse_char(&line, ' ') ||
      !parse_type(&line, &mount.type))
    return false;
  *ret = mount;
  return true;
}

/* --- hugetlbfs --- */

size_t hugetlb_devices_feed(struct hugetlb_devices *d, const char *text,
                            size_t len) {
  size_t used = whole_lines(text, len);
  struct cursor s = cursor_begin(text, used);
  struct mount mount;

  while (!cursor_is_done(&s) && d->n < HUGETLB_DEVICES_MOST) {
    if (!mountinfo_next(&s, &mount) || !span_is(mount.type, "hugetlbfs"))
      continue;
    d->devices[d->n].major = mount.major;
    d->devices[d->n++].minor = mount.minor;
  }
  return used;
}

bool hugetlb_devices_has(const struct hugetlb_devices *d, struct span device) {
  struct cursor s = cursor_begin(device.text, device.len);
  uint64_t major, minor;

  if (!parse_hex(&s, &major) || !parse_char(&s, ':') || !parse_hex(&s, &minor))
    return false;
  for (size_t i = 0; i < d->n; i++)
    if (d->devices[i].major == major && d->devices[i].minor == minor)
      return true;
  return false;
}
