/* SPDX-License-Identifier: MIT */
/* One condition on a process: an attribute against a pattern, or a PID file. */
#ifndef SMAPS_SELECTOR_H
#define SMAPS_SELECTOR_H

#include <regex.h>

#include "process/attributes.h"
#include "process/back_off.h"
#include "process/pid_claim.h"
#include <smaps/config_error.h>

/* The whole match and %{1} … %{9}. */
#define CAPTURES 10

/* The matches of a regular expression, for templates. */
struct captures {
  const char *text; /* NULL: none */
  regmatch_t match[CAPTURES];
};

/* A process whose attributes are known in part only. */
struct glimpse {
  struct attributes id;
  uint32_t pid;
  /* Bit per attribute whose NULL means "unknown" and not "it has none". */
  unsigned unknown;
  /* It may run this program under another name: comm proves nothing. */
  bool may_be_renamed;
};

enum selector_test {
  SELECT_EXACT,
  SELECT_GLOB,  /* fnmatch(3) on the whole value; '*' matches '/' too */
  SELECT_REGEX, /* POSIX extended, unanchored */
  SELECT_PID_FILE,
};

struct selector {
  enum selector_test test;
  enum attribute attribute; /* ATTRIBUTES for a PID file */
  char *pattern;            /* or the path of the PID file */
  regex_t regex;
  /* pid_watch.h keeps these of a PID file: the process that it names (0 if
   * unknown), true if it could be read, and the start time of the process that
   * was named first since the file has changed (0 for none). */
  uint32_t pid;
  bool is_pid_known;
  uint64_t starttime_ticks;
  struct pid_claim claim;
  enum pid_doubt doubt; /* why the number in it names no process */
  unsigned seeks;       /* in other namespaces, since the file has changed */
  struct back_off back_off;
  uint64_t noted_ns; /* time of the last note; 0 for never */
};

/* The names of all selectors in collectd.conf; NULL ends the list. */
extern const char *const selector_options[];

/* The place of this name in selector_options, ignoring the case; else -1. */
int selector_find(const char *option);

/*
 * Makes the selector that `option` names. "Process", which is no selector,
 * stands for an exact match of comm, as in the processes plugin. -EINVAL with
 * the expected text in *reason, or -ENOMEM. End with selector_done().
 */
int selector_init(struct selector *s, const char *option, const char *pattern,
                  struct config_error *reason);

void selector_done(struct selector *s);

/*
 * Returns 1 if the process matches, 0 if not, or -ENOMEM. captures may be NULL.
 * An unknown attribute matches nothing. An empty glob matches a process without
 * unit, slice, container, pod or the like.
 */
int selector_match(const struct selector *s, const struct attributes *id,
                   uint32_t pid, struct captures *captures);

/*
 * False if what is known of the process rules out that it matches. An unknown
 * executable is judged by comm, which exec(2) sets to the first 15 bytes of the
 * program's name.
 */
bool selector_could_match(const struct selector *s, const struct glimpse *g);

/* The number of captures in the pattern. */
size_t selector_captures(const struct selector *s);

#endif
