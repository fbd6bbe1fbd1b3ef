/*
 * Rules of the estimate that `make ablate` switches off in turn, to measure the
 * use of each (contrib/HACKING). In any other build they are all on.
 */
#ifndef SMAPS_ABLATE_H
#define SMAPS_ABLATE_H

#ifdef SMAPS_ABLATE
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
#else
#define RULE(name) true
#endif

#endif
