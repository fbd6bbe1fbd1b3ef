#include "measure/group_growth.h"

#include <math.h>

#include "estimate/group_track.h"

static void begin_group(struct group *g, size_t ordinal) {
  struct group_track *t = g->track;

  if (!g->growth)
    growth_init(&t->growth, g->report->growth_window_ns, ordinal);
  g->growth = &t->growth;
  t->oldest_start = t->newest_start = 0;
}

static void note_start(struct group_track *t, uint64_t start) {
  if (t->oldest_start == 0 || start < t->oldest_start)
    t->oldest_start = start;
  if (start > t->newest_start)
    t->newest_start = start;
}

/* A process without a start time was not identified yet. One that cannot be
 * identified in this cycle stays a member. */
static void note_starts(const struct process *p) {
  bool is_member = p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN;

  if (!is_member || p->starttime_ticks == 0)
    return;
  for (size_t i = 0; i < p->n_groups; i++)
    note_start(p->groups[i]->track, p->starttime_ticks);
}

static bool is_known(const struct usage *u) {
  return !u->is_unseen && usage_is_known(u) &&
         rollup_has(&u->rollup, ROLLUP_PSS);
}

static uint64_t amount_of(const struct usage *u) {
  uint64_t swap = rollup_has(&u->rollup, ROLLUP_SWAP_PSS)
                      ? u->rollup.bytes[ROLLUP_SWAP_PSS]
                      : 0;

  return u->rollup.bytes[ROLLUP_PSS] + swap;
}

/* How much memory a control group can still take: its limit less its usage
 * without reclaimable page cache; NaN without a limit. */
static double room_in_cgroup(const struct cgroup_memory *m) {
  double room;

  if (!m || !cgroup_memory_has(m, CGROUP_HAS_BYTES | CGROUP_HAS_LIMIT) ||
      m->limit >= CGROUP_LIMIT_NONE)
    return (double)NAN;
  room = (double)m->limit - (double)cgroup_memory_working_set(m);
  return fmax(room, 0);
}

static void note_group(struct group *g, double room_bytes, uint64_t now_ns) {
  const struct usage *u = &g->usage;

  growth_note(&g->track->growth,
              &(struct growth_sample){
                  .time_ns = now_ns,
                  .has_members = u->processes > 0 || u->is_unseen,
                  .oldest_start = g->track->oldest_start,
                  .newest_start = g->track->newest_start,
                  .is_known = is_known(u),
                  .bytes = amount_of(u),
                  .error_bytes = usage_pss_error(u),
                  .room_bytes = fmin(room_bytes, room_in_cgroup(g->cgroup))});
}

void group_growth_note(const struct group_table *groups,
                       const struct process_table *processes,
                       const struct meminfo_sample *meminfo, uint64_t now_ns) {
  /* 0 also if the control group has no room left. */
  double room_bytes = meminfo->known & MEMINFO_AVAILABLE
                          ? (double)meminfo->mem_available_bytes
                          : (double)NAN;

  for (size_t i = 0; i < groups->n; i++)
    begin_group(groups->groups[i], i);
  for (size_t i = 0; i < processes->n; i++)
    note_starts(processes->processes[i]);
  for (size_t i = 0; i < groups->n; i++)
    note_group(groups->groups[i], room_bytes, now_ns);
}
