/* SPDX-License-Identifier: MIT */
#include "measure/cgroup_watch.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/array.h"
#include "cgroup/cgroup.h"
#include "measure/whole_group.h"
#include "read/reader.h"

/* The life of a watched control group; set_state() has the transitions. While
 * its files hang, the state stays as it is. */
enum watch_state {
  WATCH_NEW,    /* a group is it, and its files were not looked for yet */
  WATCH_ABSENT, /* a group is it, but it has no files that can be read */
  WATCH_FOUND,  /* a group is it, and its files are known */
  WATCH_LEFT,   /* since this cycle no group is it: its kills are read again */
  WATCH_ENDED,  /* no group is it: its kills are shown until they are old */
};

struct watched_cgroup {
  enum watch_state state;
  struct memory_cgroup now;
  unsigned wants; /* of its groups: what is read only if it is asked for */
  /* Open, if there is room for them. The peak is reset through its own. */
  struct procfs_file usage_file, peak_file, directory;
  uint64_t serial; /* of its node: another one has other processes */
  bool has_new_processes;
  /* When limit and stat were last read, or looked for, and the usage then. */
  uint64_t slow_ns, slow_bytes;
  struct back_off hung;

  /* The results of this cycle. */
  bool was_removed;          /* even if it was made again */
  uint64_t counted, missing; /* new kills: its own; those of its parent */
  /* Its count when it was read for the last time, and the directory; 0: it was
   * not. */
  uint64_t ended_kills, ended_ino;
  uint64_t oomd_counted; /* new kills by systemd-oomd */
  bool has_oomd_tried;   /* at the last reading, and had noted no kill yet */

  struct recent_kills kills, oomd_kills;
  bool is_shown; /* a group shows it: at the end of the last cycle */

  char path[];
};

/* --- the table --- */

static int compare(const void *path, const void *element) {
  return strcmp(path, (*(struct watched_cgroup *const *)element)->path);
}

static size_t find(const struct cgroup_watch *w, const char *path,
                   bool *ret_found) {
  return array_find(w->cgroups, w->n, sizeof(struct watched_cgroup *), path,
                    compare, ret_found);
}

static void forget_place(const struct cgroup_watch *w,
                         struct watched_cgroup *c) {
  procfs_drop(w->procfs, &c->usage_file);
  procfs_drop(w->procfs, &c->peak_file);
  procfs_drop(w->procfs, &c->directory);
  c->now.hierarchy = CGROUP_NOWHERE;
  c->now.memory.is_found = false;
}

static void watched_free(const struct cgroup_watch *w,
                         struct watched_cgroup *c) {
  forget_place(w, c);
  free(c);
}

static bool is_watched(const struct watched_cgroup *c) {
  return c->state == WATCH_NEW || c->state == WATCH_ABSENT ||
         c->state == WATCH_FOUND;
}

static void set_state(const struct cgroup_watch *w, struct watched_cgroup *c,
                      enum watch_state to) {
  switch (to) {
  case WATCH_NEW:
    /* It is a group again, after it was none. */
    assert(c->state == WATCH_ENDED);
    break;
  case WATCH_ABSENT:
    /* A reading did not find its files, or not any more. */
    assert(is_watched(c));
    forget_place(w, c);
    break;
  case WATCH_FOUND:
    /* A reading has found its files. They stay known when it is removed: it is
     * often made again. */
    assert(is_watched(c));
    break;
  case WATCH_LEFT:
    /* The group has lost its members, or is another control group now. */
    assert(c->state == WATCH_FOUND);
    break;
  case WATCH_ENDED:
    /* Its kills were read for the last time, or its files were never found. */
    assert(c->state != WATCH_ENDED);
    forget_place(w, c);
    c->now.memory.known &= CGROUP_COUNTED;
    c->ended_kills = c->now.has_kills ? c->now.kills : 0;
    c->ended_ino = c->now.has_kills ? c->now.ino : 0;
    c->now.has_kills = c->now.has_parent_kills = false;
    c->now.oomd.is_known = c->now.stalls.is_known = false;
    break;
  }
  c->state = to;
}

/* NULL without memory. */
static struct watched_cgroup *get(struct cgroup_watch *w, const char *path) {
  struct watched_cgroup *c, **cgroups;
  bool is_found;
  size_t at = find(w, path, &is_found);

  if (is_found)
    return w->cgroups[at];
  c = calloc(1, sizeof(*c) + strlen(path) + 1);
  cgroups = c ? array_insert(w->cgroups, &w->n, &w->cap,
                             sizeof(struct watched_cgroup *), at)
              : NULL;
  if (!cgroups) {
    free(c);
    return NULL;
  }
  memcpy(c->path, path, strlen(path));
  w->cgroups = cgroups;
  cgroups[at] = c;
  c->now.memory.path = c->path;
  c->kills.span = c->oomd_kills.span = w->now_ns / CGROUP_KILLS_SPAN_NS;
  return c;
}

/* --- groups --- */

static void watch_group(struct cgroup_watch *w, struct group *g) {
  struct watched_cgroup *c = NULL;

  /* A group whose control group is gone still shows its kills. */
  if (g->cgroup_absence != CGROUP_PRESENT)
    return;
  c = get(w, g->cgroup_node->path);
  g->cgroup = c ? &c->now.memory : NULL;
  if (!c)
    return;
  c->now.pid = g->cgroup_pid;
  c->wants |= g->report->cgroup_wants;
  c->has_new_processes |= c->serial != g->cgroup_node->serial;
  c->serial = g->cgroup_node->serial;
  if (c->has_new_processes)
    c->now.memory.known &= CGROUP_COUNTED;
}

/* Compares the state with whether a group is this control group now. */
static void begin_state(const struct cgroup_watch *w,
                        struct watched_cgroup *c) {
  bool is_of_group = c->now.pid != 0;

  if (is_of_group && c->state == WATCH_ENDED)
    set_state(w, c, WATCH_NEW);
  else if (!is_of_group && c->state == WATCH_FOUND)
    set_state(w, c, WATCH_LEFT);
  else if (!is_of_group && is_watched(c))
    set_state(w, c, WATCH_ENDED);
}

static void watch_groups(struct cgroup_watch *w,
                         const struct group_table *groups) {
  for (size_t i = 0; i < w->n; i++) {
    struct watched_cgroup *c = w->cgroups[i];

    c->now.pid = 0;
    c->has_new_processes = c->was_removed = false;
    c->counted = c->missing = c->oomd_counted = 0;
    c->wants = 0;
  }
  for (size_t i = 0; i < groups->n; i++)
    watch_group(w, groups->groups[i]);
  for (size_t i = 0; i < w->n; i++)
    begin_state(w, w->cgroups[i]);
}

/* --- reading --- */

/* Notes how many processes of the host were killed since this number could last
 * be read. */
static void read_host_kills(struct cgroup_watch *w) {
  uint64_t kills;
  struct span text;

  w->new_host_kills = 0;
  if (w->n == 0)
    w->has_host_kills = false;
  if (w->n == 0 || procfs_read(w->procfs, 0, "vmstat", &text) != 0 ||
      !cgroup_parse_keyed(text, "oom_kill", &kills))
    return;
  if (w->has_host_kills && kills > w->host_kills)
    w->new_host_kills = kills - w->host_kills;
  w->host_kills = kills;
  w->has_host_kills = true;
}

/* True if the usage is above the limit, so the limit was raised; or if the
 * usage has changed so much that the part that is reclaimable page cache
 * matters. */
static bool has_moved(const struct watched_cgroup *c) {
  const struct cgroup_memory *m = &c->now.memory;

  return cgroup_memory_has(m, CGROUP_HAS_BYTES) &&
         (m->bytes > m->limit ||
          distance(m->bytes, c->slow_bytes) > m->limit / CGROUP_MOVED_PART);
}

/* Each cycle reads the limits of some control groups only. */
static bool is_slow_due(const struct cgroup_watch *w,
                        const struct watched_cgroup *c, size_t at) {
  return !cgroup_memory_has(&c->now.memory, CGROUP_HAS_LIMIT) ||
         (w->cycles + at) % CGROUP_SLOW_CYCLES == 0 ||
         w->now_ns - c->slow_ns >= CGROUP_SLOW_NS || has_moved(c);
}

static bool is_read(const struct cgroup_watch *w,
                    const struct watched_cgroup *c) {
  if (back_off_is_on(&c->hung, w->now_ns))
    return false;
  switch (c->state) {
  case WATCH_NEW:
  case WATCH_FOUND:
    return true;
  case WATCH_ABSENT:
    return c->has_new_processes || w->now_ns - c->slow_ns >= CGROUP_SLOW_NS;
  case WATCH_LEFT:
    return c->now.has_kills && w->new_host_kills > 0;
  case WATCH_ENDED:
    return false;
  }
  return false;
}

/* A control group that was made again began to count at 0. One that has its
 * first processes since the last cycle may have old kills, but no more new ones
 * than the host. */
static void compare_counts(const struct cgroup_watch *w,
                           struct watched_cgroup *c,
                           const struct memory_cgroup *before) {
  const struct memory_cgroup *now = &c->now;
  bool is_new = now->ino != before->ino;

  if (before->has_kills) {
    c->was_removed = now->is_gone || is_new;
    c->counted = minus(now->kills, is_new ? 0 : before->kills);
  } else if (now->has_kills && c->ended_ino == now->ino) {
    c->counted = minus(now->kills, c->ended_kills);
  } else if (now->has_kills && w->cycles > 1 && c->serial > w->nodes_before) {
    c->counted = min(now->kills, w->new_host_kills);
  }
  if (before->has_parent_kills && now->has_parent_kills)
    c->missing = minus(now->parent_kills, before->parent_kills);
}

/* Counts the kills between two readings of the counts. The number of the killed
 * is lost if the directory was removed before systemd-oomd could note it: there
 * was one at least. is_last: it will not be noted any more. Counts below those
 * before are of a new directory. */
static void count_oomd_kills(struct watched_cgroup *c,
                             const struct oomd_counts *before,
                             const struct oomd_counts *now, bool is_last) {
  bool has_tried = c->has_oomd_tried || now->ooms > before->ooms;
  uint64_t kills;

  c->has_oomd_tried = false;
  if (!before->is_known || !now->is_known)
    return;
  if (now->kills < before->kills || now->ooms < before->ooms) {
    c->oomd_counted += now->kills;
    return;
  }
  kills = now->kills - before->kills;
  if (is_last && has_tried)
    kills = max(kills, 1);
  c->has_oomd_tried = !is_last && now->ooms > before->ooms && kills == 0;
  c->oomd_counted += kills;
}

/* The reading took some time itself, so the sum can exceed the time between. */
static void compare_stalls(struct memory_cgroup *now,
                           const struct memory_cgroup *before) {
  const struct cgroup_stalls *a = &before->stalls, *b = &now->stalls;
  double us = (double)minus(b->read_ns, a->read_ns) / 1000;

  now->memory.known &= ~CGROUP_HAS_PRESSURE;
  if (!a->is_known || !b->is_known || a->ino != b->ino || us <= 0)
    return;
  now->memory.pressure_some =
      fmin(100, 100 * (double)minus(b->some_us, a->some_us) / us);
  now->memory.pressure_full =
      fmin(100, 100 * (double)minus(b->full_us, a->full_us) / us);
  now->memory.known |= CGROUP_HAS_PRESSURE;
}

static void compare_asked(struct watched_cgroup *c,
                          const struct memory_cgroup *before) {
  if (c->now.wants & CGROUP_WANTS_PRESSURE)
    compare_stalls(&c->now, before);
  if (c->now.wants & CGROUP_WANTS_OOMD)
    count_oomd_kills(c, &before->oomd, &c->now.oomd, false);
}

static void adopt_place(const struct cgroup_watch *w, struct watched_cgroup *c,
                        const struct memory_cgroup *reading) {
  if (reading->memory.absence != CGROUP_PRESENT)
    set_state(w, c, WATCH_ABSENT);
  else if (reading->hierarchy != CGROUP_NOWHERE)
    set_state(w, c, WATCH_FOUND);
  /* Else the member that was asked has ended, and the next is asked. */
}

static void adopt_reading(struct cgroup_watch *w, struct watched_cgroup *c,
                          const struct memory_cgroup *reading) {
  const struct memory_cgroup before = c->now;

  c->now = *reading;
  back_off_forgive(&c->hung);
  compare_counts(w, c, &before);
  compare_asked(c, &before);
  /* If the member that was asked has ended, another is asked at once. */
  if (reading->wants & CGROUP_WANTS_LIMIT && !reading->is_gone) {
    c->slow_ns = w->now_ns;
    c->slow_bytes = c->now.memory.bytes;
  }
  if (reading->is_gone) {
    c->now.memory.known &= CGROUP_COUNTED;
    procfs_drop(w->procfs, &c->usage_file);
  }
  if (is_watched(c))
    adopt_place(w, c, reading);
}

/* --- files that stay open --- */

static bool path_of(const struct watched_cgroup *c, enum cgroup_file file,
                    char ret[PATH_MAX + 64]) {
  return memory_cgroup_path(c->now.hierarchy, c->path, file, ret,
                            PATH_MAX + 64);
}

static void reset_peak(struct cgroup_watch *w, struct watched_cgroup *c) {
  procfs_write_open(w->procfs, &c->peak_file, "reset");
}

/* Opens the files of a control group that the reader has just read. Before
 * Linux 6.12 the peak cannot be opened to be written. */
static void keep_files(struct cgroup_watch *w, struct watched_cgroup *c) {
  char path[PATH_MAX + 64];

  if (!c->now.is_kernels ||
      !cgroup_memory_has(&c->now.memory, CGROUP_HAS_BYTES))
    return;
  if (path_of(c, CGROUP_FILE_USAGE, path))
    procfs_keep(w->procfs, path, O_RDONLY, false, &c->usage_file);
  if (c->wants & CGROUP_WANTS_PEAK && c->peak_file.fd <= 0 &&
      path_of(c, CGROUP_FILE_PEAK, path)) {
    procfs_keep(w->procfs, path, O_RDWR, true, &c->peak_file);
    reset_peak(w, c);
  }
  if (c->wants & CGROUP_WANTS_OOMD && path_of(c, CGROUP_FILE_DIRECTORY, path))
    procfs_keep(w->procfs, path, O_DIRECTORY, true, &c->directory);
}

/* The peak since the last reset, which cannot hang either. What comes between
 * the reading and the reset is lost. */
static void read_kept_peak(struct cgroup_watch *w, struct watched_cgroup *c) {
  struct span text;

  c->now.memory.known &= ~CGROUP_HAS_PEAK;
  if (!is_watched(c) ||
      procfs_read_open(w->procfs, &c->peak_file, &text) != 0 ||
      !cgroup_parse_limit(text, &c->now.memory.peak))
    return;
  c->now.memory.known |= CGROUP_HAS_PEAK;
  reset_peak(w, c);
}

/* Reads the kills by systemd-oomd from the open directory: also when it was
 * removed, because systemd removes it as soon as it is empty. False if the
 * reader has to read them. */
static bool read_kept_oomd(struct cgroup_watch *w, struct watched_cgroup *c) {
  struct oomd_counts counts;
  bool is_removed;

  if (c->directory.fd <= 0)
    return false;
  memory_cgroup_count_oomd(c->directory.fd, &counts, &is_removed);
  count_oomd_kills(c, &c->now.oomd, &counts,
                   is_removed || c->state == WATCH_LEFT);
  /* The next directory with this path begins without any. */
  c->now.oomd = counts;
  if (is_removed) {
    c->now.oomd = (struct oomd_counts){.is_known = true};
    procfs_drop(w->procfs, &c->directory);
  }
  return !is_removed;
}

/* Reads the usage from its open file, which cannot hang: the kernel only prints
 * a number. False if the reader has to read it. */
static bool read_kept_usage(struct cgroup_watch *w, struct watched_cgroup *c) {
  struct span text;

  if (!is_watched(c) ||
      procfs_read_open(w->procfs, &c->usage_file, &text) != 0 ||
      !cgroup_parse_limit(text, &c->now.memory.bytes))
    return false;
  c->now.memory.known |= CGROUP_HAS_BYTES;
  return true;
}

/* --- all of it --- */

static unsigned wishes(struct cgroup_watch *w, size_t at, bool has_oomd) {
  struct watched_cgroup *c = w->cgroups[at];
  unsigned wants = read_kept_usage(w, c) ? 0 : CGROUP_WANTS_USAGE;
  bool is_slow = is_watched(c) && is_slow_due(w, c, at);

  if (is_slow)
    wants |= CGROUP_WANTS_LIMIT;
  /* Without new kills of the host, only if one of the counts is missing. */
  if (w->new_host_kills > 0 || c->has_new_processes ||
      (is_slow && (!c->now.has_kills || !w->has_host_kills)))
    wants |= CGROUP_WANTS_KILLS;
  wants |= c->wants & ~CGROUP_WANTS_PEAK;
  return has_oomd ? wants & ~CGROUP_WANTS_OOMD : wants;
}

/* Values that were not read in this cycle keep their last reading. */
static void apply(void *ctx, struct read_job *job) {
  struct cgroup_watch *w = ctx;
  bool is_found;
  struct watched_cgroup *c = w->cgroups[find(w, job->path, &is_found)];

  if (job->result == READ_HUNG || job->result == READ_STILL_HUNG) {
    back_off_hang(&c->hung, job->result == READ_HUNG,
                  w->reader->setup.read_timeout_ns,
                  w->reader->setup.clock_ns());
    c->now.memory.known &= CGROUP_COUNTED;
    c->now.memory.absence = CGROUP_HUNG;
  } else if (job->result == 0) {
    adopt_reading(w, c, &job->cgroup);
    keep_files(w, c);
  } else if (job->cgroup.wants & CGROUP_WANTS_USAGE) {
    c->now.memory.known &= ~CGROUP_HAS_BYTES;
  }
}

static void read_all(struct cgroup_watch *w) {
  struct read_batch batch;

  read_batch_init(&batch, w->reader, apply, w);
  for (size_t i = 0; i < w->n; i++) {
    struct watched_cgroup *c = w->cgroups[i];
    struct read_job job = {.kind = READ_CGROUP, .path = c->path};
    bool has_oomd = read_kept_oomd(w, c);

    read_kept_peak(w, c);
    if (!is_read(w, c))
      continue;
    c->now.wants = wishes(w, i, has_oomd);
    job.cgroup = c->now;
    if (c->now.wants)
      read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
}

/* --- kills --- */

static bool is_within(const struct watched_cgroup *c, const char *path,
                      size_t len) {
  return strncmp(c->path, path, len) == 0 && c->path[len] == '/';
}

/* The parent's new kills that no other child has counted, if no other child was
 * removed. */
static uint64_t claim_missing(const struct cgroup_watch *w,
                              const struct watched_cgroup *removed) {
  size_t len = strlen(removed->path);
  size_t parent_len = (size_t)(strrchr(removed->path, '/') - removed->path);
  uint64_t counted = 0, n_removed = 0;

  for (size_t i = 0; i < w->n && removed->missing > 0; i++) {
    const struct watched_cgroup *c = w->cgroups[i];

    if (!is_within(c, removed->path, parent_len) ||
        is_within(c, removed->path, len))
      continue;
    n_removed += c->was_removed;
    counted += c->counted;
  }
  return n_removed == 1 ? minus(removed->missing, counted) : 0;
}

/* *sum: the kills of the last hour, before and after. */
static void add_kills(struct recent_kills *kills, uint64_t n, uint64_t span,
                      uint64_t *sum) {
  while (kills->span < span)
    kills->by_span[++kills->span % CGROUP_KILLS_SPANS] = 0;
  kills->by_span[span % CGROUP_KILLS_SPANS] += (uint32_t)n;
  kills->had_kills = *sum > 0;
  *sum = 0;
  for (size_t i = 0; i < CGROUP_KILLS_SPANS; i++)
    *sum += kills->by_span[i];
}

/* --- the end of a cycle --- */

static bool has_kills(const struct cgroup_memory *m) {
  return m->kills > 0 || m->oomd_kills > 0;
}

/* The 0 after the last kill is shown once: it ends the alarm. */
static bool shows_kills(const struct watched_cgroup *c) {
  return has_kills(&c->now.memory) || c->kills.had_kills ||
         c->oomd_kills.had_kills;
}

static void finish(const struct cgroup_watch *w, struct watched_cgroup *c) {
  struct cgroup_memory *m = &c->now.memory;
  uint64_t span = w->now_ns / CGROUP_KILLS_SPAN_NS;
  uint64_t missed =
      c->was_removed && w->new_host_kills > 0 ? claim_missing(w, c) : 0;

  /* What no group has shown waits for the next: after a start, a template has
   * no group until a process is back. */
  m->new_kills =
      (c->is_shown ? 0 : m->new_kills) + c->counted + missed + c->oomd_counted;
  c->is_shown = false;
  add_kills(&c->kills, c->counted + missed, span, &m->kills);
  add_kills(&c->oomd_kills, c->oomd_counted, span, &m->oomd_kills);
  if (c->now.oomd.is_known || m->oomd_kills > 0)
    m->known |= CGROUP_HAS_OOMD_KILLS;
  else
    m->known &= ~CGROUP_HAS_OOMD_KILLS;
  if (c->state == WATCH_LEFT)
    set_state(w, c, WATCH_ENDED);
  if (!m->is_found && m->absence == CGROUP_PRESENT)
    m->absence = CGROUP_UNKNOWN;
}

/* A group that lost its control group has its kills until they are forgotten,
 * or until the control group belongs to another group. One whose control group
 * was not found shows why; if reading it hangs, it was found. */
static void show(const struct cgroup_watch *w, struct group *g) {
  struct watched_cgroup *c;
  bool is_found;

  if (!g->cgroup)
    return;
  c = w->cgroups[find(w, g->cgroup->path, &is_found)];
  if (g->cgroup_absence == CGROUP_PRESENT) {
    g->cgroup_absence = c->now.memory.absence;
    if (!c->now.memory.is_found && !has_kills(&c->now.memory))
      g->cgroup = NULL;
  } else if (is_watched(c) || !shows_kills(c)) {
    g->cgroup = NULL;
  }
  c->is_shown |= g->cgroup != NULL;
}

static void finish_all(struct cgroup_watch *w,
                       const struct group_table *groups) {
  size_t n = 0;

  for (size_t i = 0; i < w->n; i++)
    finish(w, w->cgroups[i]);
  for (size_t i = 0; i < groups->n; i++)
    show(w, groups->groups[i]);
  for (size_t i = 0; i < w->n; i++) {
    if (is_watched(w->cgroups[i]) || shows_kills(w->cgroups[i]))
      w->cgroups[n++] = w->cgroups[i];
    else
      watched_free(w, w->cgroups[i]);
  }
  w->n = n;
}

void cgroup_watch_run(struct cgroup_watch *w, const struct matcher *matcher,
                      const struct process_table *processes, uint64_t now_ns) {
  const struct group_table *groups = matcher->rules.groups;

  w->now_ns = now_ns;
  w->cycles++;
  whole_groups_find(&matcher->rules.cgroups, processes, groups);
  watch_groups(w, groups);
  read_host_kills(w);
  read_all(w);
  finish_all(w, groups);
  w->nodes_before = matcher->rules.cgroups.made;
}

/* --- over a restart of the daemon --- */

/* Field by field, because the bytes between them are written, too. */
static void copy_kills(const struct watched_cgroup *c,
                       struct cgroup_kills *ret) {
  memset(ret, 0, sizeof(*ret));
  ret->counts.hierarchy = c->now.hierarchy;
  ret->counts.is_kernels = c->now.is_kernels;
  ret->counts.has_kills = c->now.has_kills;
  ret->counts.has_parent_kills = c->now.has_parent_kills;
  ret->counts.kills = c->now.kills;
  ret->counts.ino = c->now.ino;
  ret->counts.parent_kills = c->now.parent_kills;
  ret->counts.oomd.is_known = c->now.oomd.is_known;
  ret->counts.oomd.ooms = c->now.oomd.ooms;
  ret->counts.oomd.kills = c->now.oomd.kills;
  ret->kills = c->kills;
  ret->oomd_kills = c->oomd_kills;
}

const char *cgroup_watch_next_kills(const struct cgroup_watch *w,
                                    size_t *cursor, struct cgroup_kills *ret) {
  while (*cursor < w->n) {
    const struct watched_cgroup *c = w->cgroups[(*cursor)++];

    if (!c->now.has_kills && !shows_kills(c))
      continue;
    copy_kills(c, ret);
    return c->path;
  }
  return NULL;
}

void cgroup_watch_recall(struct cgroup_watch *w, const char *path,
                         const struct cgroup_kills *k) {
  size_t n = w->n;
  struct watched_cgroup *c = get(w, path);

  if (!c || w->n == n)
    return;
  /* The first cycle finds its files, or that no group is it any more. */
  c->state = k->counts.hierarchy == CGROUP_NOWHERE ? WATCH_ENDED : WATCH_FOUND;
  c->kills = k->kills;
  c->oomd_kills = k->oomd_kills;
  c->now = k->counts;
  c->now.memory =
      (struct cgroup_memory){.path = c->path, .known = CGROUP_HAS_KILLS};
}

void cgroup_watch_recall_host(struct cgroup_watch *w, uint64_t host_kills) {
  if (w->cycles > 0)
    return;
  w->host_kills = host_kills;
  w->has_host_kills = true;
}

void cgroup_watch_recall_group(struct cgroup_watch *w, struct group *g,
                               const char *path) {
  bool is_found;
  size_t at = find(w, path, &is_found);

  if (is_found && !g->cgroup)
    g->cgroup = &w->cgroups[at]->now.memory;
}

void cgroup_watch_done(struct cgroup_watch *w) {
  for (size_t i = 0; i < w->n; i++)
    watched_free(w, w->cgroups[i]);
  free(w->cgroups);
  w->cgroups = NULL;
  w->n = w->cap = 0;
}
