/* The summary of a capture, for its notification. */
#ifndef SMAPS_SUMMARY_H
#define SMAPS_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SUMMARY_PROCESSES 3

/* The longest text of summary_format(), without its NUL. */
#define SUMMARY_MAX 200

struct summary_process {
  uint32_t pid;
  bool has_pss;   /* if not, bytes are the resident size */
  uint64_t bytes; /* PSS */
  char comm[64];  /* escaped */
};

/*
 * The difference of two states, whatever lies between them: steps and peaks
 * count. Growth (report/growth.h) is only a rise that goes on.
 */
struct pss_change {
  int64_t bytes;
  uint64_t age_ns; /* of the earlier state, a second at least; 0: unknown */
};

struct summary {
  bool has_ended;    /* the group has ended; the rest is its last known state */
  uint64_t ended_ns; /* if has_ended: how long ago */
  bool has_pss;
  uint64_t pss_bytes; /* of the group */
  uint64_t pss_error; /* error of pss_bytes; 0: none */
  struct pss_change change;
  /* Of the control group that it is, or of its largest member's; 0: none. */
  uint64_t limit_bytes;
  struct summary_process largest[SUMMARY_PROCESSES]; /* the largest first */
  size_t n;
};

/*
 * Formats a line of printable ASCII. Parts that do not fit into `size` bytes or
 * into SUMMARY_MAX are left out from the end, so that no name and no number is
 * cut.
 *
 *   PSS 1.5 GiB, +300.0 MiB in 62 min, limit 2.0 GiB; 1234 postgres 812.3 MiB
 *
 * An error of 1 % or more follows the PSS: "PSS 1.5 GiB +- 90.0 MiB". The line
 * of a group that has ended begins with "before its end, 10 s ago: ".
 */
void summary_format(const struct summary *s, char *ret, size_t size);

/* The age of the last known state of an ended group: at least a second. */
uint64_t summary_ended_seconds(const struct summary *s);

/* Formats a process as "PID COMM BYTES", or "PID COMM RSS BYTES". */
void summary_format_process(const struct summary_process *p, char *ret,
                            size_t size);

#endif
