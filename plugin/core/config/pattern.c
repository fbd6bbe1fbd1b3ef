#include "config/pattern.h"

#include <string.h>

const char *pattern_set_end(const char *p, bool is_glob) {
  if (*p == '^' || (is_glob && *p == '!'))
    p++;
  if (*p == ']')
    p++;
  for (; *p && *p != ']'; p++) {
    const char *class_end;
    char kind = p[1];

    if (is_glob && *p == '\\' && kind) {
      p++;
      continue;
    }
    if (*p != '[' || !kind || !strchr(":.=", kind))
      continue;
    class_end = strchr(p + 2, kind);
    if (class_end && class_end[1] == ']')
      p = class_end + 1;
  }
  return *p ? p : NULL;
}

bool pattern_has_back_reference(const char *p) {
  for (; *p; p++) {
    if (*p == '[' && !(p = pattern_set_end(p + 1, false)))
      return false;
    if (*p != '\\')
      continue;
    if (p[1] >= '1' && p[1] <= '9')
      return true;
    p += p[1] != '\0';
  }
  return false;
}
