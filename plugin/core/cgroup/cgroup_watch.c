#include "cgroup/cgroup_watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup/cgroup.h"
#include "proc/array.h"
#include "read/read_batch.h"

/* Kills are counted by minutes; the first can have begun before the hour. */
#define KILLS_SPAN_NS (CGROUP_KILLS_NS / 60)
#define KILLS_SPANS 61

struct watched_cgroup {
  char *path;
  enum cgroup_hierarchy hierarchy;
  struct procfs_file usage_file; /* open, if there is room for it */
  struct cgroup_memory memory;   /* what groups show */
  uint32_t pid;    /* of a process in it; 0: it belongs to no group now */
  uint64_t serial; /* of its node: another one has other processes */
  bool has_new_processes;
  uint64_t phase; /* the cycle of CGROUP_SLOW_CYCLES for limit and stat */
  /* When limit and stat were last read, and the usage then. */
  uint64_t slow_ns, slow_bytes;
  uint64_t retry_ns; /* if absent: when to look for it again */
  struct back_off hung;

  /* The kernel's counts of killed processes, when they were last read. */
  bool has_count, has_parent_count;
  uint64_t count, parent_count, ino;
  /* The results of this cycle. */
  bool is_gone;              /* it was removed, even if it was made again */
  uint64_t counted, missing; /* kills: its own; new ones of its parent */

  uint32_t kills[KILLS_SPANS];
  uint64_t span;  /* the latest minute */
  bool had_kills; /* in the cycle before */
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
  c->hierarchy = CGROUP_NOWHERE;
  c->memory.is_found = false;
}

static void watched_free(const struct cgroup_watch *w,
                         struct watched_cgroup *c) {
  forget_place(w, c);
  free(c->path);
  free(c);
}

/* NULL without memory. */
static struct watched_cgroup *get(struct cgroup_watch *w, const char *path) {
  struct watched_cgroup *c, **cgroups;
  bool is_found;
  size_t at = find(w, path, &is_found);

  if (is_found)
    return w->cgroups[at];
  c = calloc(1, sizeof(*c));
  if (!c)
    return NULL;
  c->path = strdup(path);
  cgroups = c->path ? array_insert(w->cgroups, &w->n, &w->cap,
                                   sizeof(struct watched_cgroup *), at)
                    : NULL;
  if (!cgroups) {
    watched_free(w, c);
    return NULL;
  }
  w->cgroups = cgroups;
  cgroups[at] = c;
  c->memory.path = c->path;
  c->phase = w->made++ % CGROUP_SLOW_CYCLES;
  c->span = w->now_ns / KILLS_SPAN_NS;
  return c;
}

/* --- groups --- */

static void use(struct watched_cgroup *c, const struct group *g) {
  c->pid = g->cgroup_pid;
  c->has_new_processes |= c->serial != g->cgroup_node->serial;
  c->serial = g->cgroup_node->serial;
  if (c->has_new_processes)
    c->memory.known &= CGROUP_HAS_KILLS;
}

static void watch_group(struct cgroup_watch *w, struct group *g) {
  struct watched_cgroup *c = NULL;

  /* A group whose control group is gone still shows its kills. */
  if (g->cgroup_absence != CGROUP_PRESENT)
    return;
  c = get(w, g->cgroup_node->path);
  g->cgroup = c ? &c->memory : NULL;
  if (c)
    use(c, g);
}

static void watch_groups(struct cgroup_watch *w,
                         const struct group_table *groups) {
  for (size_t i = 0; i < w->n; i++) {
    struct watched_cgroup *c = w->cgroups[i];

    c->pid = 0;
    c->has_new_processes = false;
    c->is_gone = false;
    c->counted = c->missing = 0;
  }
  for (size_t i = 0; i < groups->n; i++)
    watch_group(w, groups->groups[i]);
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
  if (w->n == 0 || procfs_read(w->procfs, PROCFS_ROOT, "vmstat", &text) != 0 ||
      !cgroup_parse_keyed(text.text, text.len, "oom_kill", &kills))
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
  const struct cgroup_memory *m = &c->memory;
  uint64_t then = c->slow_bytes;
  uint64_t moved = m->bytes > then ? m->bytes - then : then - m->bytes;

  return cgroup_memory_has(m, CGROUP_HAS_BYTES) &&
         (m->bytes > m->limit || moved > m->limit / CGROUP_MOVED_PART);
}

/* Each cycle reads the limits of some control groups only. */
static bool is_slow_due(const struct cgroup_watch *w,
                        const struct watched_cgroup *c) {
  return !cgroup_memory_has(&c->memory, CGROUP_HAS_LIMIT) ||
         w->cycles % CGROUP_SLOW_CYCLES == c->phase ||
         w->now_ns - c->slow_ns >= CGROUP_SLOW_NS || has_moved(c);
}

static bool is_read(const struct cgroup_watch *w,
                    const struct watched_cgroup *c) {
  if (back_off_is_on(&c->hung, w->now_ns))
    return false;
  /* Without processes only the kills are read. */
  if (!c->pid)
    return c->hierarchy && c->has_count && w->new_host_kills > 0;
  return c->hierarchy || c->has_new_processes || w->now_ns >= c->retry_ns;
}

static void note_absence(const struct cgroup_watch *w, struct watched_cgroup *c,
                         enum cgroup_absence absence) {
  c->memory.absence = absence;
  if (absence == CGROUP_PRESENT)
    return;
  forget_place(w, c);
  c->retry_ns = w->now_ns + CGROUP_RETRY_NS;
}

static void adopt_values(struct watched_cgroup *c,
                         const struct memory_cgroup_reading *r) {
  struct cgroup_memory *m = &c->memory;

  m->known |= r->known & ~CGROUP_HAS_KILLS;
  if (r->known & CGROUP_HAS_BYTES)
    m->bytes = r->bytes;
  if (r->known & CGROUP_HAS_LIMIT)
    m->limit = r->limit;
  if (r->known & CGROUP_HAS_FILE) {
    m->file = r->file;
    m->inactive_file = r->inactive_file;
  }
  if (r->known & CGROUP_HAS_KERNEL)
    m->kernel = r->kernel;
}

/* All kills of a control group that is new in this cycle are new, up to the new
 * kills of the host. One that existed before, but was not watched, has old
 * ones. */
static uint64_t count_new(const struct cgroup_watch *w,
                          const struct watched_cgroup *c,
                          const struct memory_cgroup_reading *r) {
  if (c->has_count && r->ino == c->ino)
    return r->kills > c->count ? r->kills - c->count : 0;
  if (!c->has_count && c->serial <= w->nodes_before)
    return 0;
  return r->kills < w->new_host_kills ? r->kills : w->new_host_kills;
}

static void adopt_counts(const struct cgroup_watch *w, struct watched_cgroup *c,
                         const struct memory_cgroup_reading *r) {
  bool has_kills = r->known & CGROUP_HAS_KILLS;

  c->is_gone = c->has_count && (r->is_gone || (has_kills && r->ino != c->ino));
  if (c->has_parent_count && r->has_parent_kills &&
      r->parent_kills > c->parent_count)
    c->missing = r->parent_kills - c->parent_count;
  c->has_parent_count = r->has_parent_kills;
  c->parent_count = r->parent_kills;
  if (!has_kills)
    return;
  c->counted = count_new(w, c, r);
  c->count = r->kills;
  c->ino = r->ino;
  c->has_count = true;
  c->memory.known |= CGROUP_HAS_KILLS;
}

static void adopt_place(const struct cgroup_watch *w, struct watched_cgroup *c,
                        const struct memory_cgroup_reading *r) {
  if (r->hierarchy)
    c->hierarchy = r->hierarchy;
  c->memory.is_found = !r->is_gone;
  if (!r->is_gone)
    return;
  c->memory.known &= CGROUP_HAS_KILLS;
  procfs_drop(w->procfs, &c->usage_file);
}

static void adopt_reading(struct cgroup_watch *w, struct watched_cgroup *c,
                          const struct read_job *job) {
  struct memory_cgroup_reading r = job->cgroup_memory;

  back_off_forgive(&c->hung);
  adopt_place(w, c, &r);
  if (job->cgroup.wants & CGROUP_WANTS_KILLS)
    adopt_counts(w, c, &r);
  if (c->pid)
    adopt_values(c, &r);
  if (job->cgroup.wants & CGROUP_WANTS_LIMIT) {
    c->slow_ns = w->now_ns;
    c->slow_bytes = c->memory.bytes;
  }
  note_absence(w, c, r.absence);
}

/* --- the usage, from a file that stays open --- */

/* Opens the file that the reader has just read. */
static void keep_usage_file(struct cgroup_watch *w, struct watched_cgroup *c) {
  char path[PATH_MAX + 64];

  if (!cgroup_memory_has(&c->memory, CGROUP_HAS_BYTES))
    return;
  memory_cgroup_usage_path(c->hierarchy, c->path, path, sizeof(path));
  procfs_keep(w->procfs, path, &c->usage_file);
}

/* Reads the usage from its open file, which cannot hang: the kernel only prints
 * a number. False if the reader has to read it. */
static bool read_kept_usage(struct cgroup_watch *w, struct watched_cgroup *c) {
  struct span text;

  if (!c->pid || procfs_read_open(w->procfs, &c->usage_file, &text) != 0 ||
      !cgroup_parse_limit(text.text, text.len, &c->memory.bytes))
    return false;
  c->memory.known |= CGROUP_HAS_BYTES;
  return true;
}

/* --- all of it --- */

static unsigned wishes(struct cgroup_watch *w, struct watched_cgroup *c) {
  unsigned wants = read_kept_usage(w, c) ? 0 : CGROUP_WANTS_USAGE;
  bool is_slow = c->pid && is_slow_due(w, c);

  if (is_slow)
    wants |= CGROUP_WANTS_LIMIT;
  /* Without new kills of the host, only if one of the counts is missing. */
  if (w->new_host_kills > 0 || c->has_new_processes ||
      (is_slow && (!c->has_count || !w->has_host_kills)))
    wants |= CGROUP_WANTS_KILLS;
  return wants;
}

/* Values that were not read in this cycle keep their last reading. */
static void apply(void *ctx, struct read_job *job) {
  struct cgroup_watch *w = ctx;
  bool is_found;
  struct watched_cgroup *c = w->cgroups[find(w, job->path, &is_found)];

  if (job->cgroup.wants & CGROUP_WANTS_USAGE)
    c->memory.known &= ~CGROUP_HAS_BYTES;
  if (job->result == READ_HUNG || job->result == READ_STILL_HUNG) {
    back_off_extend(&c->hung, job->result == READ_HUNG, w->read_timeout_ns,
                    w->clock_ns());
    c->memory.known &= CGROUP_HAS_KILLS;
    c->memory.absence = CGROUP_HUNG;
  } else if (job->result == 0) {
    adopt_reading(w, c, job);
    keep_usage_file(w, c);
  }
}

static void read_all(struct cgroup_watch *w) {
  struct read_batch batch;

  read_batch_init(&batch, w->reader, apply, w);
  for (size_t i = 0; i < w->n; i++) {
    struct watched_cgroup *c = w->cgroups[i];
    struct read_job job = {.kind = READ_CGROUP, .path = c->path};

    if (!is_read(w, c))
      continue;
    job.cgroup = (struct memory_cgroup_request){
        .pid = c->pid, .hierarchy = c->hierarchy, .wants = wishes(w, c)};
    if (job.cgroup.wants)
      read_batch_add(&batch, &job);
  }
  read_batch_flush(&batch);
}

/* --- kills --- */

static size_t parent_length(const struct watched_cgroup *c) {
  return (size_t)(strrchr(c->path, '/') - c->path);
}

static bool is_within(const struct watched_cgroup *c, const char *path,
                      size_t len) {
  return strncmp(c->path, path, len) == 0 && c->path[len] == '/';
}

static bool is_below(const struct watched_cgroup *c,
                     const struct watched_cgroup *top) {
  return is_within(c, top->path, strlen(top->path));
}

/* True if a watched control group between c and the parent of `gone` counts the
 * kills of c, too. */
static bool is_counted_above(const struct cgroup_watch *w,
                             const struct watched_cgroup *c,
                             const struct watched_cgroup *gone) {
  for (size_t i = 0; i < w->n; i++)
    if (is_below(c, w->cgroups[i]) &&
        is_within(w->cgroups[i], gone->path, parent_length(gone)))
      return true;
  return false;
}

/* The parent's new kills that no child has counted, if no other child has
 * disappeared. */
static uint64_t claim_missing(const struct cgroup_watch *w,
                              const struct watched_cgroup *gone) {
  uint64_t counted = 0, n_gone = 0;

  for (size_t i = 0; i < w->n && gone->missing > 0; i++) {
    const struct watched_cgroup *c = w->cgroups[i];

    if (!is_within(c, gone->path, parent_length(gone)) || is_below(c, gone))
      continue;
    n_gone += c->is_gone;
    if (c->counted > 0 && !is_counted_above(w, c, gone))
      counted += c->counted;
  }
  return n_gone == 1 && gone->missing > counted ? gone->missing - counted : 0;
}

static void add_kills(struct watched_cgroup *c, uint64_t n, uint64_t span) {
  while (c->span < span)
    c->kills[++c->span % KILLS_SPANS] = 0;
  c->kills[span % KILLS_SPANS] += (uint32_t)n;
  c->had_kills = c->memory.kills > 0;
  c->memory.kills = 0;
  for (size_t i = 0; i < KILLS_SPANS; i++)
    c->memory.kills += c->kills[i];
}

static void count_kills(struct cgroup_watch *w) {
  for (size_t i = 0; i < w->n; i++) {
    struct watched_cgroup *c = w->cgroups[i];
    uint64_t missed =
        c->is_gone && w->new_host_kills > 0 ? claim_missing(w, c) : 0;

    add_kills(c, c->counted + missed, w->now_ns / KILLS_SPAN_NS);
  }
}

/* --- the end of a cycle --- */

/* The 0 after the last kill is shown once: it ends the alarm. */
static bool shows_kills(const struct watched_cgroup *c) {
  return c->memory.kills > 0 || c->had_kills;
}

/* While no group is this control group, only its kills are known. */
static bool is_kept(const struct cgroup_watch *w, struct watched_cgroup *c) {
  if (!c->pid) {
    c->memory.known &= CGROUP_HAS_KILLS;
    c->has_count = c->has_parent_count = false;
    forget_place(w, c);
  }
  if (!c->memory.is_found && c->memory.absence == CGROUP_PRESENT)
    c->memory.absence = CGROUP_UNKNOWN;
  return c->pid || shows_kills(c);
}

/* True if the group lost its control group, and has no kills of it to show:
 * they are forgotten, or the control group belongs to another group now. */
static bool has_ended(const struct cgroup_watch *w, const struct group *g) {
  bool is_found;
  const struct watched_cgroup *c;

  if (!g->cgroup || g->cgroup_absence == CGROUP_PRESENT)
    return false;
  c = w->cgroups[find(w, g->cgroup->path, &is_found)];
  return c->pid || !shows_kills(c);
}

static void drop_unused(struct cgroup_watch *w,
                        const struct group_table *groups) {
  size_t n = 0;

  for (size_t i = 0; i < groups->n; i++)
    if (has_ended(w, groups->groups[i]))
      groups->groups[i]->cgroup = NULL;
  for (size_t i = 0; i < w->n; i++) {
    if (is_kept(w, w->cgroups[i]))
      w->cgroups[n++] = w->cgroups[i];
    else
      watched_free(w, w->cgroups[i]);
  }
  w->n = n;
}

/* Report why the control group was not found. If reading it hangs, it was
 * found. */
static void hide_absent(const struct group_table *groups) {
  for (size_t i = 0; i < groups->n; i++) {
    struct group *g = groups->groups[i];

    if (!g->cgroup || g->cgroup_absence != CGROUP_PRESENT)
      continue;
    g->cgroup_absence = g->cgroup->absence;
    if (!g->cgroup->is_found && g->cgroup->kills == 0)
      g->cgroup = NULL;
  }
}

void cgroup_watch_run(struct cgroup_watch *w, const struct matcher *matcher,
                      const struct process_table *processes, uint64_t now_ns) {
  const struct group_table *groups = matcher->groups;

  w->now_ns = now_ns;
  w->cycles++;
  whole_find(&matcher->cgroups, processes, groups);
  watch_groups(w, groups);
  read_host_kills(w);
  read_all(w);
  count_kills(w);
  drop_unused(w, groups);
  hide_absent(groups);
  w->nodes_before = matcher->cgroups.made;
}

void cgroup_watch_done(struct cgroup_watch *w) {
  for (size_t i = 0; i < w->n; i++)
    watched_free(w, w->cgroups[i]);
  free(w->cgroups);
  w->cgroups = NULL;
  w->n = w->cap = 0;
}
