/* SPDX-License-Identifier: MIT */
/* Runs budget and schedule together over thousands of cycles of random loads.
 * The tests check who is read, how long each waits, and how much is spent in
 * any minute. */
#include "test.h"

#include "base/duration.h"
#include "match/group.h"
#include "member/member.h"
#include "schedule/schedule.h"

#include <string.h>

#include "draw.h"

#define CYCLES 10000
#define PROCESSES 250
#define SPAN_NS (60 * NS_PER_S)

/* A load of processes; numbers of 1,000 processes are in an interval. */
struct load {
  const char *name;
  unsigned interval_s;
  unsigned max_age_s[2]; /* of two groups */
  double scarcity;       /* what all need, by the budget */
  unsigned busy;         /* of 1,000 processes, with error anew */
  unsigned replaced;     /* of 1,000 processes */
  bool has_giant;        /* that costs half a minute of the budget */
};

struct worker {
  uint64_t error_bytes, growth_bytes; /* growth: in each interval */
  uint64_t read_ns, wanted_ns;        /* read_ns 0: never */
  uint64_t max_age_ns;
  uint32_t time_ns;
};

struct run {
  const struct load *load;
  struct worker members[PROCESSES];
  struct process processes[PROCESSES]; /* the same, for the candidates */
  struct group_track tracks[2];
  struct group groups[2], *group_list[2];
  struct read_budget budget;
  uint64_t now_ns, begin_ns, interval_ns, largest_ns;
  double needed;
  uint64_t longest_over_ns; /* of any, beyond twice its MaxAge */
  double on_doubt_ns;       /* spent on those of which something was wrong */
  uint64_t spent_ns[CYCLES];
};

/* Costs spread over four decades, from 3 us. */
static uint32_t draw_cost(void) {
  static const uint32_t decades[] = {1, 10, 100, 1000};

  return (uint32_t)(3000 + draw(27000)) * decades[draw(4)];
}

static void replace(struct run *r, struct worker *m) {
  *m = (struct worker){.wanted_ns = r->now_ns,
                       .max_age_ns = m->max_age_ns,
                       .time_ns = m->time_ns,
                       .error_bytes = draw(64 * MIB)};
}

static void begin(struct run *r, const struct load *load) {
  *r = (struct run){.load = load,
                    .now_ns = 1000 * NS_PER_S,
                    .begin_ns = 1000 * NS_PER_S,
                    .interval_ns = load->interval_s * NS_PER_S};
  for (size_t i = 0; i < 2; i++) {
    r->groups[i].track = &r->tracks[i];
    r->group_list[i] = &r->groups[i];
  }
  for (size_t i = 0; i < PROCESSES; i++) {
    struct worker *m = &r->members[i];

    m->time_ns = draw_cost();
    m->max_age_ns = load->max_age_s[i % 2] * NS_PER_S;
    replace(r, m);
    r->needed += (double)m->time_ns / (double)m->max_age_ns;
  }
  if (load->has_giant) {
    struct worker *m = &r->members[0];
    double others = r->needed - (double)m->time_ns / (double)m->max_age_ns;
    double share = others / load->scarcity;

    m->time_ns = (uint32_t)(30e9 * share);
    r->needed = others + (double)m->time_ns / (double)m->max_age_ns;
  }
  read_budget_init(&r->budget, 100 * r->needed / load->scarcity, SPAN_NS);
  for (size_t i = 0; i < PROCESSES; i++)
    if (r->members[i].time_ns > r->largest_ns)
      r->largest_ns = r->members[i].time_ns;
}

static uint64_t since_ns(const struct worker *m) {
  return m->read_ns ? m->read_ns : m->wanted_ns;
}

/* Lets the time between two cycles pass. */
static void live(struct run *r) {
  r->now_ns += r->interval_ns;
  for (size_t i = 0; i < PROCESSES; i++) {
    struct worker *m = &r->members[i];

    if (draw(1000) < r->load->replaced)
      replace(r, m);
    if (1000 * i < PROCESSES * r->load->busy && draw(20) == 0)
      m->growth_bytes = draw(2) ? 1 + draw(8 * MIB) : 0;
    m->error_bytes += m->growth_bytes;
  }
}

static void note_waiting(struct run *r) {
  for (size_t i = 0; i < PROCESSES; i++) {
    const struct worker *m = &r->members[i];
    uint64_t waits_ns = r->now_ns - since_ns(m);

    if (waits_ns > 2 * m->max_age_ns &&
        waits_ns - 2 * m->max_age_ns > r->longest_over_ns)
      r->longest_over_ns = waits_ns - 2 * m->max_age_ns;
  }
}

static size_t gather(struct run *r, struct candidate *c) {
  size_t n = 0;

  for (size_t i = 0; i < 2; i++)
    r->tracks[i] = (struct group_track){.tolerated_bytes = 20 * MIB};
  for (size_t i = 0; i < PROCESSES; i++) {
    struct worker *m = &r->members[i];
    bool is_due = !m->read_ns || r->now_ns - m->read_ns >= m->max_age_ns;

    if (!is_due && m->error_bytes == 0)
      continue;
    c[n++] = (struct candidate){
        .process = &r->processes[i],
        .groups = &r->group_list[i % 2],
        .n_groups = 1,
        .error = {.common = (double)m->error_bytes},
        .deadline_ns = since_ns(m) + m->max_age_ns * (m->read_ns ? 2 : 1),
        .time_ns = m->time_ns,
        .is_due = is_due};
    r->tracks[i % 2].error.common += (double)m->error_bytes;
  }
  return n;
}

static uint64_t run_cycle(struct run *r) {
  struct candidate c[PROCESSES];
  size_t n = gather(r, c);
  uint64_t spent_ns = 0;
  struct schedule s;

  read_budget_begin(&r->budget, r->now_ns, r->interval_ns, r->needed);
  s = schedule_choose(c, n, &r->budget);
  for (size_t i = 0; i < s.chosen; i++) {
    struct worker *m = &r->members[c[i].process - r->processes];

    r->on_doubt_ns += m->error_bytes > 0 ? m->time_ns : 0;
    m->read_ns = r->now_ns;
    m->error_bytes = 0;
    spent_ns += m->time_ns;
  }
  read_budget_charge(&r->budget, spent_ns);
  return spent_ns;
}

static void run(struct run *r, const struct load *load) {
  begin(r, load);
  for (unsigned i = 0; i < CYCLES; i++) {
    live(r);
    note_waiting(r);
    r->spent_ns[i] = run_cycle(r);
  }
}

/* Asserts that no minute spends more than two minutes earn, and one reading. */
static void check_minutes(const struct run *r) {
  double most_ns =
      r->budget.share * (double)(2 * SPAN_NS) + (double)r->largest_ns;
  uint64_t sum_ns = 0;

  for (unsigned i = 0, first = 0; i < CYCLES; i++) {
    sum_ns += r->spent_ns[i];
    while ((i - first) * r->interval_ns >= SPAN_NS)
      sum_ns -= r->spent_ns[first++];
    if ((double)sum_ns > most_ns)
      fail_msg("%s: %.3f ms in the minute to cycle %u, of %.3f", r->load->name,
               (double)sum_ns / 1e6, i, most_ns / 1e6);
  }
}

/* Over all it is the share; and all of it where all of it is wanted. */
static void check_all(const struct run *r) {
  double sum_ns = 0, part;

  for (unsigned i = 0; i < CYCLES; i++)
    sum_ns += (double)r->spent_ns[i];
  part = sum_ns / (r->budget.share * (double)(r->now_ns - r->begin_ns));
  if (part > 1.01 || (r->load->scarcity >= 1 && part < 0.99))
    fail_msg("%s: %.3f of the budget is spent", r->load->name, part);
}

/* A wait is noted at the next cycle only, and a reading that has begun is not
 * interrupted. */
static void check_waiting(const struct run *r, uint64_t beyond_ns) {
  uint64_t bound_ns = beyond_ns + r->interval_ns +
                      (uint64_t)((double)r->largest_ns / r->budget.share);

  if (r->longest_over_ns > bound_ns)
    fail_msg("%s: one waits for %.0f s beyond twice its MaxAge, %.0f allowed",
             r->load->name, (double)r->longest_over_ns / 1e9,
             (double)bound_ns / 1e9);
}

static struct run the_run; /* too large for a stack */

TEST(nobody_waits_for_longer_than_twice_max_age_if_the_budget_suffices) {
  static const struct load loads[] = {
      {"idle, 1 s", 1, {60, 60}, 0.5, 0, 0, false},
      {"idle, 10 s", 10, {600, 600}, 1, 0, 0, false},
      {"busy, 1 s", 1, {60, 60}, 1, 1000, 0, false},
      {"busy, 10 s", 10, {60, 600}, 1, 1000, 0, false},
      {"busy, 60 s", 60, {600, 600}, 0.9, 800, 1, false},
      {"storm, 1 s", 1, {60, 120}, 1, 500, 200, false},
      {"storm, 10 s", 10, {600, 60}, 0.7, 500, 500, false},
      {"giant, 1 s", 1, {120, 60}, 1, 500, 10, true},
      {"giant, 10 s", 10, {600, 600}, 0.9, 1000, 10, true},
  };

  draw_begin(1848);
  for (size_t i = 0; i < LENGTH(loads); i++) {
    run(&the_run, &loads[i]);
    check_minutes(&the_run);
    check_waiting(&the_run, 0);
    check_all(&the_run);
  }
}

/* They take turns: each waits for as long as a round takes in three quarters of
 * the budget. The rest stays for processes with an error. */
TEST(nobody_starves_if_the_budget_does_not_suffice) {
  static const struct load loads[] = {
      {"scarce, 1 s", 1, {60, 60}, 4, 100, 0, false},
      {"scarce, 10 s", 10, {60, 60}, 8, 100, 0, false},
      {"scarce, giant", 10, {600, 600}, 3, 100, 0, true},
  };

  draw_begin(1871);
  for (size_t i = 0; i < LENGTH(loads); i++) {
    const struct load *load = &loads[i];
    double rounds = load->scarcity / 0.75 - 1; /* beyond twice MaxAge */
    struct run *r = &the_run;

    run(r, load);
    check_minutes(r);
    check_waiting(r, (uint64_t)(rounds * load->max_age_s[0] * 1e9));
    check_all(r);
    assert_true(r->on_doubt_ns >
                0.25 * r->budget.share * (double)(r->now_ns - r->begin_ns));
  }
}
