/*
 * One cycle from the list of processes to the sums of the groups:
 *
 *   procfs_list       which processes are there
 *   identify_all      who they are                   (statm; stat, names)
 *   matcher_run       which groups they belong to    (rules, parents)
 *   measurer_run      what they use                  (smaps_rollup)
 *   recorder_run      what is written to disk         (smaps, for captures)
 *   metric_next       what of it is published        (called by the glue)
 *
 * All that can hang in the kernel goes through the reader (reader.h), in a
 * thread that is left alone when it does (crew.h), and so is the process
 * (quarantine.h).
 *
 * Nothing in here logs or knows collectd.
 */
#ifndef SMAPS_COLLECTOR_H
#define SMAPS_COLLECTOR_H

#include <smaps/group.h>
#include <smaps/scribe.h>
#include <smaps/settings.h>
#include <smaps/snapshot.h>
#include <smaps/trouble.h>

struct collector;

/* What the last cycle did; times in nanoseconds. */
struct collector_counts {
  uint64_t cycle_ns;
  uint64_t rollup_ns; /* of that, spent in reading rollups */
  uint64_t longest_read_ns;
  uint64_t processes; /* with memory of their own: no kernel threads, zombies */
  uint64_t matched;   /* of these, in a group */
  uint64_t groups;    /* reported */
  uint64_t rollup_reads;
  uint64_t deferred;       /* members not read, for lack of time or readers */
  uint64_t vanished;       /* ended while they were looked at */
  uint64_t denied;         /* the kernel refuses them, or their rollup */
  uint64_t stalled;        /* processes in quarantine: their reading hangs */
  uint64_t unidentified;   /* alive, and in which groups is not known */
  uint64_t groups_refused; /* names that MaxGroups kept out */
};

/* NULL for what the system has. */
struct collector_hooks {
  uint64_t (*clock_ns)(void);     /* never 0 */
  uint64_t (*cpu_clock_ns)(void); /* of the thread that asks */
  /* This one may be called in another thread. */
  int (*look_up_user)(uint32_t uid, char *ret, size_t size);
  uint64_t (*wall_clock_ns)(void); /* since the Epoch */
  /* What has become of a snapshot; see scribe.h. Needed where there are any. */
  void (*written)(const struct written *w);
};

/*
 * Settings are finished and outlive the collector. Returns 0 or a negative
 * errno, or what procfs_new() returns for the proc root. Free with
 * collector_free(), which takes NULL.
 */
int collector_new(struct settings *settings,
                  const struct collector_hooks *hooks, struct collector **ret);
void collector_free(struct collector *c);

/*
 * Looks at everything once. A negative errno, where the proc root cannot be
 * listed or memory has run out, means that there is nothing new to publish.
 * Trouble with single processes is no failure.
 */
int collector_cycle(struct collector *c);

/* Asks for a capture; on any thread. What is about none of our groups is let
 * pass. */
void collector_raise(struct collector *c, const struct alarm *alarm);

/* 0, or why the last snapshot that was due could not be made. */
int collector_snapshot_error(const struct collector *c);

/* What the last cycle found; all belongs to c and holds until the next. */
const struct collector_counts *collector_counts(const struct collector *c);
const struct trouble *collector_trouble(const struct collector *c,
                                        enum trouble_kind kind);
const struct metric_context *
collector_metric_context(const struct collector *c);

/* The next group to report, from *cursor, which is 0 at first; NULL at the
 * end. */
const struct group *collector_next_group(const struct collector *c,
                                         size_t *cursor);

#endif
