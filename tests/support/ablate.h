/* SPDX-License-Identifier: MIT */
/* Included before each source by PROFILE=ablate: see base/ablate.h. */
#ifndef SMAPS_TESTS_ABLATE_H
#define SMAPS_TESTS_ABLATE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ABLATE names one of them, or several with commas between. */
static inline bool rule_is_on(const char *name) {
  const char *off = getenv("ABLATE"), *at;
  size_t length = strlen(name);

  for (at = off ? strstr(off, name) : NULL; at; at = strstr(at + 1, name))
    if ((at == off || at[-1] == ',') &&
        (at[length] == '\0' || at[length] == ','))
      return false;
  return true;
}
#define RULE(name) rule_is_on(#name)

#endif
