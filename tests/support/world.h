/* A proc tree with a collector that watches it, under a clock of our own. */
#ifndef SMAPS_TESTS_WORLD_H
#define SMAPS_TESTS_WORLD_H

#include <smaps/collector.h>

#include "proctree.h"

struct world {
  struct proctree tree;
  struct settings settings;
  struct collector *collector;
};

/* An empty tree and no rule; every member is read in every cycle, unless the
 * settings are changed before the first. */
void world_make(struct world *w);
void world_remove(struct world *w);

/*
 * Adds a group (or, with name NULL, an Ignore) with up to two selectors; option
 * NULL for none. The rule that is returned can be changed until the first
 * cycle.
 */
struct rule *world_group(struct world *w, const char *name, const char *option,
                         const char *pattern, const char *option2,
                         const char *pattern2);
void world_other(struct world *w, const char *name);

/* Runs a cycle, `seconds` after the last one; the collector is made for the
 * first. Returns what collector_cycle() does. */
int world_cycle(struct world *w, unsigned seconds);

/* Lets the first reading of the next cycle take that long. */
void world_interrupt(uint64_t ns);

/* A reported group of the last cycle, or NULL. */
const struct group *world_find(const struct world *w, const char *name);

/* How many groups the last cycle reports. */
size_t world_groups(const struct world *w);

/* How many members a group has; 0 where it is not reported. */
unsigned world_members(const struct world *w, const char *name);

/* A value of a group as it is published, by its name in Report. */
double world_value(const struct world *w, const char *group,
                   const char *metric);

#endif
