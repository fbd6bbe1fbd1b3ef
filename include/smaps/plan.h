/*
 * Which readings to make in an interval, when there is no time for all: those
 * that take away the most doubt for the time they cost.
 */
#ifndef SMAPS_PLAN_H
#define SMAPS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A group of processes, for the plan. */
struct plan_group {
  uint64_t doubt_bytes;     /* of all members; goes down as they are chosen */
  uint64_t tolerated_bytes; /* down to here nothing need be read */
};

struct candidate {
  void *process;
  struct plan_group *group;
  uint64_t doubt_bytes;
  uint32_t cost_ns;   /* predicted */
  uint16_t deferrals; /* intervals it was wanted in and not chosen */
  bool is_due;        /* never read, or its reading is older than MaxAge */
  bool is_must;       /* Refresh "always": whatever the budget */
};

struct plan {
  size_t chosen;   /* the first ones of the array */
  size_t deferred; /* those behind them; the rest need not be read */
};

/*
 * Orders the candidates. What must be read comes first and is not charged to
 * the budget. Then come, most doubt for the time first, those that are due and
 * those whose group has more doubt than it tolerates; who was deferred gains
 * each time. A single one that would not fit a whole budget is chosen when it
 * comes first, lest it starve.
 */
struct plan plan_choose(struct candidate *c, size_t n, uint64_t budget_ns);

#endif
