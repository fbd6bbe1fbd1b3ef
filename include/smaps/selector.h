/* One condition on a process: an attribute against a pattern, or a PID file. */
#ifndef SMAPS_SELECTOR_H
#define SMAPS_SELECTOR_H

#include <regex.h>

#include <smaps/identity.h>
#include <smaps/reason.h>

/* The whole match and %{1} … %{9}. */
#define CAPTURES 10

/* What a regular expression has matched, for templates to name. */
struct captures {
  const char *text; /* NULL where there is none */
  regmatch_t match[CAPTURES];
};

enum selector_test {
  SELECT_EXACT,
  SELECT_GLOB,  /* fnmatch(3) on the whole value; '*' takes in '/' */
  SELECT_REGEX, /* POSIX extended, unanchored */
  SELECT_PID_FILE,
};

struct selector {
  enum selector_test test;
  enum attribute attribute; /* ATTRIBUTES for a PID file */
  char *pattern;            /* or the path of the PID file */
  regex_t regex;
  /* Set by the watch (pid_watch.h): whom the PID file names, 0 for nobody that
   * is known of, and whether it could be read. */
  uint32_t pid;
  bool is_pid_known;
};

/* The names of all selectors, as in collectd.conf; NULL behind the last. */
extern const char *const selector_options[];

/*
 * Makes the selector that `option` (case apart) names. -ENOENT where it names
 * none; -EINVAL with what was expected in *reason; -ENOMEM. End with
 * selector_done().
 */
int selector_init(struct selector *s, const char *option, const char *pattern,
                  struct reason *reason);

/* Comm, letter for letter: what `Process` means in the processes plugin.
 * -EINVAL or -ENOMEM as above. */
int selector_init_process(struct selector *s, const char *comm,
                          struct reason *reason);

void selector_done(struct selector *s);

/*
 * 1 where the process is selected, 0 where it is not, -ENOMEM where that took
 * more memory than there is. captures may be NULL. An attribute that is not
 * known matches nothing.
 */
int selector_match(const struct selector *s, const struct identity *id,
                   uint32_t pid, struct captures *captures);

/* How many captures the pattern makes. */
size_t selector_captures(const struct selector *s);

#endif
