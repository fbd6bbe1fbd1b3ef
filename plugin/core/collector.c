/* SPDX-License-Identifier: MIT */
#include <smaps/collector.h>

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arith.h"
#include "match/match.h"
#include "match/unseen.h"
#include "measure/cgroup_watch.h"
#include "measure/freed.h"
#include "measure/measure.h"
#include "member/address_space.h"
#include "proc/kernel.h"
#include "proc/meminfo.h"
#include "read/identify.h"
#include "read/pid_watch.h"
#include "snapshot/alarms.h"
#include "snapshot/recorder.h"

struct collector {
  struct procfs *procfs;
  struct process_table processes;
  struct group_table groups;
  struct reader reader;
  uint64_t vanished; /* processes, while they were identified */
  struct matcher matcher;
  struct cgroup_watch cgroup_watch;
  struct measurer measurer;
  struct recorder recorder;
  struct alarms alarms;
  struct scene scene; /* of the last cycle; zero before it */
  bool is_whole;      /* the last cycle has not failed */
  const struct settings *settings;
  struct cycle_results results;
  uint64_t (*clock_ns)(void);
  uint64_t (*cpu_clock_ns)(void);
  uint64_t (*wall_clock_ns)(void);
};

/* How long the end may wait for files to be written. */
#define WRITE_TIMEOUT_NS (2 * NS_PER_S)

static uint64_t read_clock(clockid_t clock) {
  struct timespec t;

  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t monotonic_ns(void) { return read_clock(CLOCK_MONOTONIC); }

static uint64_t thread_cpu_ns(void) {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t realtime_ns(void) { return read_clock(CLOCK_REALTIME); }

static void release_process(void *ctx, struct process *p) {
  struct collector *c = ctx;

  match_forget(&c->matcher.rules, p);
  member_free(p);
  procfs_drop(c->procfs, &p->statm_file);
}

/* True if the tree is of the running kernel: not captured, nor made by a
 * container's runtime. */
static bool is_of_kernel(const struct collector *c) {
  uint64_t type;

  return procfs_file_system(c->procfs, 0, "meminfo", &type) == 0 &&
         type == PROC_SUPER_MAGIC;
}

static int init_reader(struct collector *c, const struct settings *settings,
                       int (*look_up_user)(uint32_t, char *, size_t)) {
  const struct reader_setup setup = {
      .procfs = c->procfs,
      .diags = c->results.diags,
      .attributes = settings->attributes,
      .rule_attributes = settings->rule_attributes,
      .interval_ns = settings->interval_ns,
      .read_timeout_ns = settings->read_timeout_ns,
      .averages_mapcounts = c->results.averages_mapcounts,
      .clock_ns = c->clock_ns,
      .cpu_clock_ns = c->cpu_clock_ns,
      .look_up_user = look_up_user,
      .container_root = settings->container_root};

  return reader_init(&c->reader, &setup);
}

int collector_new(struct settings *settings,
                  const struct collector_hooks *hooks, struct collector **ret) {
  static const struct collector_hooks none;
  struct collector *c = calloc(1, sizeof(*c));
  int rc;

  if (!c)
    return -ENOMEM;
  hooks = hooks ? hooks : &none;
  c->clock_ns = hooks->clock_ns ? hooks->clock_ns : monotonic_ns;
  c->cpu_clock_ns = hooks->cpu_clock_ns ? hooks->cpu_clock_ns : thread_cpu_ns;
  c->wall_clock_ns = hooks->wall_clock_ns ? hooks->wall_clock_ns : realtime_ns;
  c->settings = settings;
  c->processes = (struct process_table){.gone = release_process, .ctx = c};
  c->groups.max_templates = (size_t)settings->max_groups;
  rc = procfs_new(settings->proc_root, &c->procfs);
  c->results.averages_mapcounts =
      rc == 0 && is_of_kernel(c) && kernel_averages_mapcounts();
  c->results.is_captured = rc == 0 && procfs_is_captured(c->procfs);
  if (rc == 0)
    rc = init_reader(c, settings, hooks->look_up_user);
  if (rc == 0)
    rc = matcher_init(&c->matcher, settings, &c->groups, c->results.diags,
                      c->clock_ns);
  if (rc == 0)
    rc = recorder_init(&c->recorder, settings, &c->reader, hooks->written);
  if (rc != 0) {
    collector_free(c);
    return rc;
  }
  c->cgroup_watch =
      (struct cgroup_watch){.procfs = c->procfs, .reader = &c->reader};
  measurer_init(&c->measurer, c->procfs, &c->reader, c->results.diags);
  c->measurer.cycle.interval_ns = settings->interval_ns;
  c->measurer.wants_page_tables = settings->wants_page_tables;
  c->measurer.wants_freed = settings->wants_freed;
  read_budget_init(&c->measurer.budget, settings->read_budget_percent,
                   settings->read_budget_span_ns);
  if (procfs_has_own_pids(c->procfs))
    measurer_watch_kernel(&c->measurer);
  *ret = c;
  return 0;
}

void collector_free(struct collector *c) {
  if (!c)
    return;
  if (c->is_whole)
    recorder_finish(&c->recorder, &c->scene);
  recorder_done(&c->recorder, WRITE_TIMEOUT_NS);
  last_known_done(&c->groups);
  process_table_done(&c->processes);
  group_table_done(&c->groups);
  cgroup_watch_done(&c->cgroup_watch);
  matcher_done(&c->matcher);
  measurer_done(&c->measurer);
  reader_done(&c->reader);
  procfs_free(c->procfs);
  free(c);
}

static int discover(struct collector *c) {
  const struct procfs_entry *entries;
  size_t n;
  int rc = procfs_list(c->procfs, &entries, &n);

  if (rc < 0)
    return rc;
  return process_table_update(&c->processes, entries, n);
}

static struct meminfo_sample read_meminfo(struct collector *c) {
  struct meminfo_sample meminfo = {0};
  struct span text;

  if (procfs_read(c->procfs, 0, "meminfo", &text) == 0)
    meminfo_parse(text.text, text.len, &meminfo);
  return meminfo;
}

/* In a container the file uptime may show the container's, but start times are
 * since boot. A captured tree has an uptime of its own, whose seconds do. */
static uint64_t uptime_ns(struct collector *c) {
  struct span text;
  struct cursor s;
  uint64_t seconds;

  if (procfs_has_own_pids(c->procfs))
    return read_clock(CLOCK_BOOTTIME);
  if (procfs_read(c->procfs, 0, "uptime", &text) != 0)
    return 0;
  s = cursor_begin(text.text, text.len);
  return parse_u64(&s, &seconds) && seconds < UINT32_MAX ? seconds * NS_PER_S
                                                         : 0;
}

/* True if hidepid=2 or 4 hides processes: a pid namespace has a process 1 for
 * all its life. */
static bool has_hidden(const struct collector *c) {
  return procfs_has_own_pids(c->procfs) && c->processes.n > 0 &&
         c->processes.processes[0]->pid != 1;
}

/* meminfo is of the whole host even in a container, but its processes are not.
 * The host is seen if meminfo is of the kernel, and if kernel threads are
 * listed: only the host's own pid namespace has them. */
static bool sees_host(const struct collector *c) {
  if (!is_of_kernel(c))
    return false;
  for (size_t i = 0; i < c->processes.n; i++)
    if (c->processes.processes[i]->state == PROCESS_KERNEL)
      return true;
  return false;
}

static void update_host(struct collector *c, const struct meminfo_sample *m) {
  struct host_processes *processes = &c->measurer.aggregate.host;
  uint64_t of_default = m->huge_pages_total * m->huge_page_size_bytes;
  struct host_devices devices;

  c->results.host = (struct host_account){.known = 0};
  if (!c->settings->reports_host || !m->mem_total_bytes || !sees_host(c))
    return;
  devices = (struct host_devices){.zram_bytes = kernel_zram_bytes()};
  if (m->hugetlb_bytes > of_default)
    devices.hugetlb_free_bytes = kernel_hugetlb_free(m->huge_page_size_bytes);
  host_account_make(m, processes, &devices, &c->results.host);
}

static void count_all(struct collector *c, uint64_t start_ns) {
  struct collector_counts counts = c->measurer.counts;
  size_t cursor = 0;

  counts.read_budget_wanted = read_budget_wanted_percent(&c->measurer.budget);
  counts.vanished += c->vanished;
  counts.denied += c->results.diags[DIAG_PROCESS_DENIED].count;
  for (size_t i = 0; i < c->processes.n; i++) {
    const struct process *p = c->processes.processes[i];
    bool is_alive = p->state == PROCESS_ALIVE || p->state == PROCESS_UNKNOWN;

    counts.processes += is_alive;
    counts.unidentified += process_is_unidentified(p);
    counts.matched += is_alive && p->n_groups > 0;
    counts.groups_refused += p->membership.refused_names != 0;
    counts.hung += is_alive && quarantine_has(p, start_ns);
  }
  while (collector_next_group(c, &cursor))
    counts.groups++;
  if (reader_count_hung(&c->reader) == WORKER_POOL_MAX)
    c->results.diags[DIAG_READERS_HUNG].count = WORKER_POOL_MAX;
  if (c->settings->state_file)
    counts.state_age_ns = recorder_state_age_ns(&c->recorder, start_ns);
  counts.cycle_ns = c->clock_ns() - start_ns;
  c->results.counts = counts;
}

int collector_cycle(struct collector *c) {
  uint64_t now_ns = c->clock_ns(), wall_ns = c->wall_clock_ns();
  struct meminfo_sample meminfo;
  int rc;

  c->is_whole = false;
  memset(c->results.diags, 0, sizeof(c->results.diags));
  rc = discover(c);
  if (rc < 0)
    return rc;
  rc = reader_begin(&c->reader, now_ns);
  if (rc < 0)
    return rc;
  group_table_begin(&c->groups, now_ns);
  c->vanished = identify_all(&c->reader, &c->processes);
  address_space_relate(&c->processes, c->results.diags);
  pid_watch_run(&c->reader, c->settings, &c->processes);
  rc = matcher_run(&c->matcher, &c->processes);
  if (rc < 0)
    return rc;
  meminfo = read_meminfo(c);
  c->measurer.cycle.uptime_ns = uptime_ns(c);
  rc = measurer_run(&c->measurer, &c->processes, &c->groups, &meminfo, now_ns);
  if (rc < 0)
    return rc;
  c->results.diags[DIAG_HIDDEN].count = has_hidden(c);
  unseen_mark(&c->matcher.rules, c->procfs, &c->processes, has_hidden(c),
              c->reader.page_size);
  recorder_recall(&c->recorder,
                  &(struct resume_owners){.now_ns = now_ns,
                                          .groups = &c->groups,
                                          .cgroup_watch = &c->cgroup_watch,
                                          .host_alarm = &c->alarms.host});
  cgroup_watch_run(&c->cgroup_watch, &c->matcher, &c->processes, now_ns);
  freed_note_unmapped(&c->groups, minus(meminfo.shmem_bytes,
                                        c->measurer.aggregate.host.pss_shmem));
  group_growth_note(&c->groups, &meminfo, now_ns);
  update_host(c, &meminfo);
  c->results.context =
      (struct metric_context){.kernel_fields = c->measurer.cycle.kernel_fields,
                              .mem_total = meminfo.mem_total_bytes,
                              .has_uptime = c->measurer.cycle.uptime_ns > 0};
  c->scene = (struct scene){.settings = c->settings,
                            .processes = &c->processes,
                            .groups = &c->groups,
                            .cycle = &c->measurer.cycle,
                            .aggregate = &c->measurer.aggregate,
                            .meminfo = meminfo,
                            .host = &c->results.host,
                            .time_ns = wall_ns};
  /* The counts are those of the cycle before. */
  alarms_run(&c->alarms, &c->scene, &c->results.counts, &c->recorder);
  c->results.alarms = c->alarms.told;
  c->results.n_alarms = c->alarms.n;
  c->results.snapshot_error = recorder_run(&c->recorder, &c->scene, now_ns);
  alarms_note_capture(&c->alarms, &c->recorder);
  count_all(c, now_ns);
  c->is_whole = true;
  return 0;
}

void collector_raise(struct collector *c, const struct alarm *alarm) {
  recorder_raise(&c->recorder, alarm);
}

void collector_tell_again(struct collector *c, const char *group) {
  struct group *g = group_table_find(&c->groups, group);

  if (g)
    alarm_tell_again(&g->alarm);
  c->recorder.state_ns = 0; /* recorder_finish() writes it */
}

int collector_snapshot(const struct collector *c, char **ret_text,
                       size_t *ret_len) {
  struct document d;
  int rc = snapshot_make(&c->scene, NULL, &d);

  if (rc < 0)
    return rc;
  *ret_text = d.text;
  *ret_len = d.len;
  return 0;
}

int collector_close_up(struct collector *c, uint32_t pid, char **ret_text,
                       size_t *ret_len) {
  return recorder_close_up(&c->scene, &c->reader, pid, ret_text, ret_len);
}

const struct cycle_results *collector_results(const struct collector *c) {
  return &c->results;
}

struct group *collector_next_group(const struct collector *c, size_t *cursor) {
  while (*cursor < c->groups.n) {
    struct group *g = c->groups.groups[(*cursor)++];

    if (group_is_reported(g))
      return g;
  }
  return NULL;
}
