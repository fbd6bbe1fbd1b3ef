#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/estimate.h>

#include <string.h>

#define KIB UINT64_C(1024)
#define PAGE UINT64_C(4096)
#define PAGE_KB 4
#define SECOND UINT64_C(1000000000)
#define AT (1000 * SECOND)
#define KNOWN ((1U << ROLLUP_FIELDS) - 1)
#define PSS_PARTS                                                              \
  (1U << ROLLUP_PSS_ANON | 1U << ROLLUP_PSS_FILE | 1U << ROLLUP_PSS_SHMEM)

static uint64_t uss_of(const struct rollup *r) {
  return r->bytes[ROLLUP_PRIVATE_CLEAN] + r->bytes[ROLLUP_PRIVATE_DIRTY];
}

static uint64_t shared_of(const struct rollup *r) {
  return r->bytes[ROLLUP_SHARED_CLEAN] + r->bytes[ROLLUP_SHARED_DIRTY];
}

static void expect_same(const struct rollup *got, const struct rollup *want) {
  assert_int_equal(got->known, want->known);
  assert_memory_equal(got->bytes, want->bytes, sizeof(got->bytes));
}

static struct rollup in_kb(const uint32_t *kb) {
  struct rollup r = {.known = KNOWN};

  for (int f = 0; f < ROLLUP_FIELDS; f++)
    r.bytes[f] = kb[f] * KIB;
  return r;
}

/*
 * One of four relatives: 400 kB of its own, 400 kB that all four share by copy
 * on write (100 each) and 200 kB of a file that another three map (50).
 */
static const uint32_t worker_kb[ROLLUP_FIELDS] = {
    [ROLLUP_RSS] = 1000,         [ROLLUP_PSS] = 550,
    [ROLLUP_PSS_DIRTY] = 500,    [ROLLUP_PSS_ANON] = 500,
    [ROLLUP_PSS_FILE] = 50,      [ROLLUP_SHARED_CLEAN] = 200,
    [ROLLUP_SHARED_DIRTY] = 400, [ROLLUP_PRIVATE_DIRTY] = 400,
    [ROLLUP_REFERENCED] = 900,   [ROLLUP_ANONYMOUS] = 800,
    [ROLLUP_SWAP] = 100,         [ROLLUP_SWAP_PSS] = 60,
};

static const struct evidence worker_at_reading = {
    .now_ns = AT,
    .page_size = PAGE,
    .statm = {.resident_pages = 250, .shared_pages = 50},
    .minor_faults = 5000,
    .vm_swap_kb = 100,
    .is_swap_used = true,
    .relatives = 4,
    .cow_breaks = 1,
    .shared_cost = 1,
    .shared_doubt = 1,
    .relatives_doubt = 1};

/* No COW, no relatives: 600 kB of its own, 200 kB of a file at a half. */
static const uint32_t loner_kb[ROLLUP_FIELDS] = {
    [ROLLUP_RSS] = 800,           [ROLLUP_PSS] = 700,
    [ROLLUP_PSS_DIRTY] = 500,     [ROLLUP_PSS_ANON] = 600,
    [ROLLUP_PSS_FILE] = 100,      [ROLLUP_SHARED_CLEAN] = 200,
    [ROLLUP_PRIVATE_CLEAN] = 100, [ROLLUP_PRIVATE_DIRTY] = 500,
    [ROLLUP_REFERENCED] = 800,    [ROLLUP_ANONYMOUS] = 600,
};

static const struct evidence loner_at_reading = {
    .now_ns = AT,
    .page_size = PAGE,
    .statm = {.resident_pages = 200, .shared_pages = 50},
    .minor_faults = 5000,
    .relatives = 1,
    .cow_breaks = 1,
    .shared_cost = 1,
    .shared_doubt = 1,
    .relatives_doubt = 1};

static struct reading take(const struct rollup *rollup,
                           const struct evidence *e) {
  struct reading r;

  assert_true(reading_take(&r, rollup, e));
  return r;
}

struct step {
  const char *name;
  /* What differs from the evidence at the reading. */
  int anon, shared; /* pages */
  int faults, swap_kb, relatives, seconds;
  double cow_breaks, cow_doubt; /* breaks 0 stands for 1 */
  uint64_t broken_by_relatives_kb;
  bool is_ksm_merged, is_ksm_split;
  bool is_swap_off;
  /* What is to come out, in kB. */
  double pss, uss, rss, anonymous, pss_anon, pss_file, swap, swap_pss, doubt;
};

static struct evidence evidence_after(const struct evidence *at,
                                      const struct step *s) {
  struct evidence e = *at;

  e.now_ns += (uint64_t)s->seconds * SECOND;
  e.statm.resident_pages += (uint64_t)(s->anon + s->shared);
  e.statm.shared_pages += (uint64_t)s->shared;
  e.minor_faults += (uint32_t)s->faults;
  e.vm_swap_kb += (uint64_t)s->swap_kb;
  e.relatives += (uint32_t)s->relatives;
  e.shared_cost = (double)at->relatives / (double)e.relatives;
  e.cow_breaks = s->cow_breaks > 0 ? s->cow_breaks : 1;
  e.cow_doubt = s->cow_doubt;
  e.broken_by_relatives = s->broken_by_relatives_kb * KIB;
  e.is_ksm_merged = s->is_ksm_merged;
  e.is_ksm_split = s->is_ksm_split;
  e.is_swap_used = !s->is_swap_off;
  return e;
}

static void expect_kb(const char *name, const char *what, uint64_t got,
                      double want_kb) {
  double apart = (double)got / 1024 - want_kb;

  /* A byte or two go in rounding. */
  if (apart > 0.01 || apart < -0.01)
    fail_msg("%s: %s is %f kB, not %f", name, what, (double)got / 1024,
             want_kb);
}

static void check_steps(const uint32_t *kb, const struct evidence *at,
                        const struct step *steps, size_t n) {
  struct rollup rollup = in_kb(kb), got;
  struct reading r = take(&rollup, at);

  for (size_t i = 0; i < n; i++) {
    const struct step *s = &steps[i];
    struct evidence e = evidence_after(at, s);

    estimate_rollup(&r, &e, &got);
    assert_int_equal(got.known, KNOWN);
    expect_kb(s->name, "pss", got.bytes[ROLLUP_PSS], s->pss);
    expect_kb(s->name, "uss", uss_of(&got), s->uss);
    expect_kb(s->name, "rss", got.bytes[ROLLUP_RSS], s->rss);
    expect_kb(s->name, "shared", shared_of(&got), s->rss - s->uss);
    expect_kb(s->name, "anonymous", got.bytes[ROLLUP_ANONYMOUS], s->anonymous);
    expect_kb(s->name, "pss_anon", got.bytes[ROLLUP_PSS_ANON], s->pss_anon);
    expect_kb(s->name, "pss_file", got.bytes[ROLLUP_PSS_FILE], s->pss_file);
    expect_kb(s->name, "swap", got.bytes[ROLLUP_SWAP], s->swap);
    expect_kb(s->name, "swap_pss", got.bytes[ROLLUP_SWAP_PSS], s->swap_pss);
    expect_kb(s->name, "doubt", estimate_doubt(&r, &e), s->doubt);
  }
}

#define WANT(p, u, r, a, pa, pf, sw, sp, d)                                    \
  .pss = (p), .uss = (u), .rss = (r), .anonymous = (a), .pss_anon = (pa),      \
  .pss_file = (pf), .swap = (sw), .swap_pss = (sp), .doubt = (d)

static void what_changed_says_what_a_worker_uses(void **state) {
  /* clang-format off */
  static const struct step steps[] = {
    /*                                  pss  uss   rss anon  p_a p_f  sw  sp doubt */
    {"nothing",                    WANT(550, 400, 1000, 800, 500, 50, 100, 60, 0)},
    {"private growth", .anon = 10, .faults = 10,
                                   WANT(590, 440, 1040, 840, 540, 50, 100, 60, 0)},
    {"growth by huge pages", .anon = 512, .faults = 1,
                              WANT(2598, 2448, 3048, 2848, 2548, 50, 100, 60, 0)},
    {"shrinkage, of which any part may have been shared", .anon = -10,
                                   WANT(510, 360, 960, 760, 460, 50, 100, 60, 15)},
    {"a file grows", .shared = 10, WANT(560, 400, 1040, 800, 500, 60, 100, 60, 30)},
    {"a file shrinks", .shared = -10,
                                   WANT(540, 400, 960, 800, 500, 40, 100, 60, 30)},
    {"swap out", .anon = -25, .swap_kb = 100,
                             WANT(450, 300, 900, 700, 400, 50, 200, 122.5, 37.5)},
    {"swap in, of which any part may be shared", .anon = 10, .faults = 10,
     .swap_kb = -40,        WANT(582, 418.67, 1040, 840, 532, 50, 60, 36, 8)},
    {"more than came back", .anon = 20, .faults = 20, .swap_kb = -40,
                            WANT(622, 458.67, 1080, 880, 572, 50, 60, 36, 8)},
    {"swap is off", .anon = 25, .swap_kb = -100, .is_swap_off = true,
                                   WANT(630, 446.67, 1100, 900, 580, 50, 0, 0, 20)},
    {"another table of swap", .is_swap_off = true,
                                   WANT(550, 400, 1000, 800, 500, 50, 100, 60, 0)},
    {"all swap goes", .swap_kb = -100,
                                   WANT(550, 400, 1000, 800, 500, 50, 0, 0, 0)},
    {"faults break sharing", .faults = 20,
                                   WANT(610, 480, 1000, 800, 560, 50, 100, 60, 0)},
    {"and are not sure to", .faults = 20, .cow_doubt = 0.5,
                                   WANT(610, 480, 1000, 800, 560, 50, 100, 60, 40)},
    {"every other one does", .faults = 20, .cow_breaks = 0.5,
                                   WANT(580, 440, 1000, 800, 530, 50, 100, 60, 0)},
    {"no more than was shared", .faults = 100000,
                                   WANT(850, 800, 1000, 800, 800, 50, 100, 60, 0)},
    {"faults that brought memory broke nothing", .anon = 10, .faults = 15,
                                   WANT(605, 460, 1040, 840, 555, 50, 100, 60, 0)},
    {"a counter that went back", .faults = -5000,
                                   WANT(550, 400, 1000, 800, 500, 50, 100, 60, 0)},
    {"a relative broke its part", .broken_by_relatives_kb = 20,
                                   WANT(570, 400, 1000, 800, 520, 50, 100, 60, 0)},
    {"merging", .is_ksm_merged = true,
                                   WANT(550, 400, 1000, 800, 500, 50, 100, 60, 800)},
    {"ten seconds", .seconds = 10, WANT(550, 400, 1000, 800, 500, 50, 100, 60, 1.5)},
    {"a long time: no more than what is shared", .seconds = 1000000,
                                   WANT(550, 400, 1000, 800, 500, 50, 100, 60, 600)},
    {"merging for long: no more than what is resident", .seconds = 1000000,
     .is_ksm_merged = true,      WANT(550, 400, 1000, 800, 500, 50, 100, 60, 1000)},
  };
  /* clang-format on */

  (void)state;
  check_steps(worker_kb, &worker_at_reading, steps,
              sizeof(steps) / sizeof(steps[0]));
}

/* After 2^32 of them, which a busy process has in a day. */
static void the_count_of_faults_goes_round(void **state) {
  /* clang-format off */
  static const struct step steps[] = {
    {"faults break sharing", .faults = 20,
                                   WANT(610, 480, 1000, 800, 560, 50, 100, 60, 0)},
  };
  /* clang-format on */
  struct evidence at_reading = worker_at_reading;

  (void)state;
  at_reading.minor_faults = UINT32_MAX - 9;
  check_steps(worker_kb, &at_reading, steps, 1);
}

static void private_memory_that_comes_and_goes_is_exact(void **state) {
  /* clang-format off */
  static const struct step steps[] = {
    /*                                         pss  uss  rss  anon  p_a  p_f */
    {"nothing",                           WANT(700, 600, 800, 600, 600, 100, 0, 0, 0)},
    {"one page", .anon = 1,               WANT(704, 604, 804, 604, 604, 100, 0, 0, 0)},
    {"grown", .anon = 1000,        WANT(4700, 4600, 4800, 4600, 4600, 100, 0, 0, 0)},
    {"grown by faults", .anon = 5, .faults = 5,
                                          WANT(720, 620, 820, 620, 620, 100, 0, 0, 0)},
    {"faults alone: there is no sharing to break", .faults = 1000,
                                          WANT(700, 600, 800, 600, 600, 100, 0, 0, 0)},
    {"shrunk", .anon = -10,               WANT(660, 560, 760, 560, 560, 100, 0, 0, 0)},
    {"shrunk into what is clean", .anon = -140,
                                          WANT(140, 40, 240, 40, 40, 100, 0, 0, 0)},
    {"all gone", .anon = -150,            WANT(100, 0, 200, 0, 0, 100, 0, 0, 0)},
    {"swapped out", .anon = -10, .swap_kb = 40,
                                          WANT(660, 560, 760, 560, 560, 100, 40, 40, 0)},
  };
  /* clang-format on */

  (void)state;
  check_steps(loner_kb, &loner_at_reading, steps,
              sizeof(steps) / sizeof(steps[0]));
}

static void nothing_changed_gives_the_very_reading(void **state) {
  struct rollup odd = {.known = KNOWN}, got;
  struct reading r;

  (void)state;
  /* Whatever it was, even where parts do not add up to the kB. */
  for (uint64_t f = 0; f < ROLLUP_FIELDS; f++)
    odd.bytes[f] = (1000 + 7 * f) * KIB;
  r = take(&odd, &worker_at_reading);
  assert_true(r.at_ns == AT);
  reading_get(&r, &got);
  expect_same(&got, &odd);
  estimate_rollup(&r, &worker_at_reading, &got);
  expect_same(&got, &odd);
  assert_int_equal(estimate_broken(&r, &worker_at_reading), 0);
}

static void relatives_scale_what_is_shared(void **state) {
  static const struct {
    const char *name;
    uint32_t was, is;
    double pss, doubt; /* kB */
  } cases[] = {
      {"as many", 4, 4, 550, 0},           {"twice as many", 4, 8, 475, 400},
      {"half as many", 4, 2, 700, 400},    {"one more", 1, 2, 475, 400},
      {"not above rss", 40, 1, 1000, 780}, {"not known", 0, 4, 550, 800},
  };

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct evidence e = worker_at_reading;
    struct rollup rollup = in_kb(worker_kb), got;
    struct reading r;

    e.relatives = cases[i].was;
    r = take(&rollup, &e);
    e.relatives = cases[i].is;
    if (cases[i].was)
      e.shared_cost = (double)cases[i].was / cases[i].is;
    estimate_rollup(&r, &e, &got);
    expect_kb(cases[i].name, "pss", got.bytes[ROLLUP_PSS], cases[i].pss);
    expect_kb(cases[i].name, "uss", uss_of(&got), 400);
    expect_kb(cases[i].name, "rss", got.bytes[ROLLUP_RSS], 1000);
    expect_kb(cases[i].name, "doubt", estimate_doubt(&r, &e), cases[i].doubt);
  }
}

static void what_was_broken_is_told(void **state) {
  struct rollup rollup = in_kb(worker_kb);
  struct reading r = take(&rollup, &worker_at_reading);
  struct evidence e = worker_at_reading;

  (void)state;
  assert_int_equal(reading_cow_bytes(&r), 300 * KIB);
  e.minor_faults += 20;
  assert_int_equal(estimate_broken(&r, &e), 80 * KIB);
  e.cow_breaks = 0.25;
  assert_int_equal(estimate_broken(&r, &e), 20 * KIB);
  e.cow_breaks = 1;
  e.minor_faults += 100000;
  assert_int_equal(estimate_broken(&r, &e), 400 * KIB);
}

static void shmem_grows_where_shmem_is_what_there_is(void **state) {
  uint32_t kb[ROLLUP_FIELDS];
  struct evidence e = worker_at_reading;
  struct rollup rollup, got;
  struct reading r;

  (void)state;
  memcpy(kb, worker_kb, sizeof(kb));
  kb[ROLLUP_PSS_FILE] = 10;
  kb[ROLLUP_PSS_SHMEM] = 40;
  rollup = in_kb(kb);
  r = take(&rollup, &e);
  e.statm.resident_pages += 10;
  e.statm.shared_pages += 10;
  estimate_rollup(&r, &e, &got);
  expect_kb("shmem", "pss", got.bytes[ROLLUP_PSS], 560);
  expect_kb("shmem", "pss_shmem", got.bytes[ROLLUP_PSS_SHMEM], 50);
  expect_kb("shmem", "pss_file", got.bytes[ROLLUP_PSS_FILE], 10);
  expect_kb("shmem", "pss_anon", got.bytes[ROLLUP_PSS_ANON], 500);
}

/* First mappings of a process that had none: its own, as far as we know. */
static void shared_growth_from_nothing_counts_in_full(void **state) {
  static const uint32_t kb[ROLLUP_FIELDS] = {
      [ROLLUP_RSS] = 400,           [ROLLUP_PSS] = 400,
      [ROLLUP_PSS_ANON] = 400,      [ROLLUP_ANONYMOUS] = 400,
      [ROLLUP_PRIVATE_DIRTY] = 400,
  };
  struct evidence e = {.now_ns = AT,
                       .page_size = PAGE,
                       .statm = {.resident_pages = 100},
                       .relatives = 1,
                       .cow_breaks = 1,
                       .shared_cost = 1,
                       .shared_doubt = 1,
                       .relatives_doubt = 1};
  struct rollup rollup = in_kb(kb), got;
  struct reading r = take(&rollup, &e);

  (void)state;
  e.statm.resident_pages = 110;
  e.statm.shared_pages = 10;
  estimate_rollup(&r, &e, &got);
  expect_kb("growth", "rss", got.bytes[ROLLUP_RSS], 440);
  expect_kb("growth", "pss", got.bytes[ROLLUP_PSS], 440);
  expect_kb("growth", "uss", uss_of(&got), 400);
  expect_kb("growth", "doubt", estimate_doubt(&r, &e), 40);
}

static void fields_that_the_kernel_lacks_stay_unknown(void **state) {
  static const uint32_t lacking[] = {
      PSS_PARTS, /* 4.14 to 5.2 */
      PSS_PARTS | 1U << ROLLUP_PSS_DIRTY | 1U << ROLLUP_KSM,
      1U << ROLLUP_PSS_DIRTY | 1U << ROLLUP_KSM,
      1U << ROLLUP_KSM,
  };
  struct evidence e = loner_at_reading;

  (void)state;
  for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
    struct rollup rollup = in_kb(loner_kb), got;
    struct reading r;

    rollup.known &= ~lacking[i];
    for (int f = 0; f < ROLLUP_FIELDS; f++)
      if ((lacking[i] >> f) & 1)
        rollup.bytes[f] = 0;
    r = take(&rollup, &loner_at_reading);
    e.statm.resident_pages = 220; /* 10 pages of each kind */
    e.statm.shared_pages = 60;
    e.minor_faults += 100;
    estimate_rollup(&r, &e, &got);
    assert_int_equal(got.known, KNOWN & ~lacking[i]);
    /* Before 5.3 the ratio comes from what is not anonymous. */
    expect_kb("lacking", "pss", got.bytes[ROLLUP_PSS], 700 + 40 + 20);
    expect_kb("lacking", "uss", uss_of(&got), 640);
    assert_int_equal(estimate_broken(&r, &e), 0);
  }
}

static void without_pss_anon_no_broken_sharing_is_seen(void **state) {
  struct rollup rollup = in_kb(worker_kb), got;
  struct evidence e = worker_at_reading;
  struct reading r;

  (void)state;
  rollup.known &= ~PSS_PARTS;
  for (int f = ROLLUP_PSS_ANON; f <= ROLLUP_PSS_SHMEM; f++)
    rollup.bytes[f] = 0;
  r = take(&rollup, &e);
  e.minor_faults += 20;
  assert_int_equal(reading_cow_bytes(&r), 0);
  assert_int_equal(rollup_cow_bytes(&rollup), 0);
  assert_int_equal(estimate_broken(&r, &e), 0);
  estimate_rollup(&r, &e, &got);
  expect_same(&got, &rollup);
}

static void amounts_that_do_not_fit_are_refused(void **state) {
  static const uint64_t most = UINT32_MAX;
  struct rollup rollup = in_kb(worker_kb), got;
  struct evidence e = worker_at_reading;
  struct reading r = {.at_ns = 1};

  (void)state;
  for (int f = 0; f < ROLLUP_FIELDS; f++) {
    rollup = in_kb(worker_kb);
    rollup.bytes[f] = most * KIB;
    assert_true(reading_take(&r, &rollup, &e));
    reading_get(&r, &got);
    assert_true(got.bytes[f] == most * KIB);
    rollup.bytes[f] += KIB;
    assert_false(reading_take(&r, &rollup, &e));
    assert_true(r.at_ns == 0);
  }
  rollup = in_kb(worker_kb);
  e.statm.resident_pages = most;
  e.vm_swap_kb = most;
  assert_true(reading_take(&r, &rollup, &e));
  e.statm.resident_pages = most + 1;
  assert_false(reading_take(&r, &rollup, &e));
  assert_true(r.at_ns == 0);
  e.statm.resident_pages = most;
  e.vm_swap_kb = most + 1;
  assert_false(reading_take(&r, &rollup, &e));
  assert_true(r.at_ns == 0);
}

static uint64_t seed;

static uint64_t draw(uint64_t below) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % below;
}

static void add_kb(struct rollup *r, enum rollup_field f, uint64_t kb) {
  r->bytes[f] += kb * KIB;
}

/* Some memory of one kind: kB, a quarter of the time none at all. */
static uint64_t draw_kb(uint64_t scale) {
  return draw(4) ? draw(scale) * PAGE_KB : 0;
}

/* A rollup that obeys what the kernel guarantees, of private and of shared
 * memory of each kind. */
static struct rollup draw_rollup(void) {
  uint64_t scale = UINT64_C(1) << draw(26);
  struct rollup r = {.known = KNOWN};

  for (int kind = ROLLUP_PSS_ANON; kind <= ROLLUP_PSS_SHMEM; kind++)
    for (int is_shared = 0; is_shared < 2; is_shared++)
      for (int is_dirty = 0; is_dirty < 2; is_dirty++) {
        uint64_t kb = draw_kb(scale);
        uint64_t pss = is_shared ? kb / (1 + draw(100)) : kb;
        int f = is_shared ? ROLLUP_SHARED_CLEAN : ROLLUP_PRIVATE_CLEAN;

        add_kb(&r, (enum rollup_field)(f + is_dirty), kb);
        add_kb(&r, ROLLUP_RSS, kb);
        add_kb(&r, ROLLUP_PSS, pss);
        add_kb(&r, (enum rollup_field)kind, pss);
        if (is_dirty)
          add_kb(&r, ROLLUP_PSS_DIRTY, pss);
        if (kind == ROLLUP_PSS_ANON)
          add_kb(&r, ROLLUP_ANONYMOUS, kb);
      }
  add_kb(&r, ROLLUP_REFERENCED, draw(r.bytes[ROLLUP_RSS] / KIB + 1));
  for (int f = ROLLUP_KSM; f <= ROLLUP_ANON_HUGE_PAGES; f++)
    add_kb(&r, (enum rollup_field)f, draw(r.bytes[ROLLUP_ANONYMOUS] / KIB + 1));
  for (int f = ROLLUP_SHMEM_PMD_MAPPED; f <= ROLLUP_FILE_PMD_MAPPED; f++)
    add_kb(&r, (enum rollup_field)f,
           draw((r.bytes[ROLLUP_RSS] - r.bytes[ROLLUP_ANONYMOUS]) / KIB + 1));
  add_kb(&r, ROLLUP_SWAP, draw_kb(scale));
  add_kb(&r, ROLLUP_SWAP_PSS, draw(r.bytes[ROLLUP_SWAP] / KIB + 1));
  add_kb(&r, ROLLUP_LOCKED, draw(r.bytes[ROLLUP_PSS] / KIB + 1));
  return r;
}

/* Before 5.3, or before 6.0. */
static void forget_some(struct rollup *r) {
  uint32_t lacking = draw(2) ? PSS_PARTS | 1U << ROLLUP_PSS_DIRTY
                             : 1U << ROLLUP_PSS_DIRTY | 1U << ROLLUP_KSM;

  r->known &= ~lacking;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    if ((lacking >> f) & 1)
      r->bytes[f] = 0;
}

static struct evidence draw_evidence_at(const struct rollup *r) {
  struct evidence e = {.now_ns = AT,
                       .page_size = draw(8) ? PAGE : 16 * PAGE,
                       .minor_faults = (uint32_t)draw(UINT64_C(1) << draw(32)),
                       .relatives = (uint32_t)draw(20),
                       .shared_cost = 1};

  e.statm.resident_pages = r->bytes[ROLLUP_RSS] / e.page_size;
  e.statm.shared_pages =
      (r->bytes[ROLLUP_RSS] - r->bytes[ROLLUP_ANONYMOUS]) / e.page_size;
  e.vm_swap_kb = r->bytes[ROLLUP_SWAP] / KIB;
  if (draw(4) == 0) { /* read at different times, or not exact */
    e.statm.resident_pages += draw(1 + e.statm.resident_pages / 2);
    e.statm.shared_pages = draw(e.statm.resident_pages + 1);
    e.vm_swap_kb = draw(UINT64_C(1) << draw(31));
  }
  return e;
}

static double draw_share(void) {
  return draw(3) ? (double)draw(1001) / 1000 : (double)draw(2);
}

/* Anything, near to what was or far from it. */
static void draw_change(struct evidence *e, const struct reading *r) {
  uint64_t resident = e->statm.resident_pages;
  uint64_t shared = e->statm.shared_pages;
  uint64_t anon = resident - shared;

  if (draw(3))
    anon = draw(2) ? draw(anon + 1) : anon + draw(UINT64_C(1) << draw(28));
  if (draw(3))
    shared =
        draw(2) ? draw(shared + 1) : shared + draw(UINT64_C(1) << draw(28));
  e->statm.resident_pages = anon + shared;
  e->statm.shared_pages = shared;
  if (draw(3))
    e->minor_faults =
        (uint32_t)(draw(4) ? e->minor_faults + draw(UINT64_C(1) << draw(32))
                           : draw((uint64_t)e->minor_faults + 1));
  if (draw(3))
    e->vm_swap_kb = draw(UINT64_C(1) << draw(33));
  if (draw(2))
    e->relatives = (uint32_t)draw(draw(10) ? 20 : 100000);
  if (draw(2))
    e->shared_cost = draw_share() * 3;
  e->shared_moved = draw_share();
  e->shared_doubt = draw_share();
  e->relatives_doubt = draw_share();
  e->now_ns += draw(UINT64_C(1) << draw(55));
  e->cow_breaks = draw_share();
  e->cow_doubt = draw_share();
  e->is_ksm_merged = draw(10) == 0;
  e->is_ksm_split = draw(10) == 0;
  e->is_swap_used = draw(10) > 0;
  if (draw(3) == 0)
    e->broken_by_relatives = draw(reading_cow_bytes(r) + 1);
}

static const char *broken_relation(const struct rollup *u) {
  const uint64_t *b = u->bytes;

  for (int f = 0; f < ROLLUP_FIELDS; f++)
    if (b[f] > UINT64_C(1) << 60)
      return "no amount wraps around";
  for (int f = ROLLUP_REFERENCED; f <= ROLLUP_FILE_PMD_MAPPED; f++)
    if (b[f] > b[ROLLUP_RSS])
      return "what is a part of rss is within it";
  for (int f = ROLLUP_KSM; f <= ROLLUP_ANON_HUGE_PAGES; f++)
    if (b[f] > b[ROLLUP_ANONYMOUS])
      return "what is anonymous is within it";
  if (uss_of(u) > b[ROLLUP_PSS])
    return "uss <= pss";
  if (b[ROLLUP_PSS] > b[ROLLUP_RSS])
    return "pss <= rss";
  if (uss_of(u) + shared_of(u) != b[ROLLUP_RSS])
    return "the four add up to rss";
  if (b[ROLLUP_PSS_DIRTY] > b[ROLLUP_PSS])
    return "pss_dirty <= pss";
  if (rollup_has(u, ROLLUP_PSS_ANON) &&
      b[ROLLUP_PSS_ANON] + b[ROLLUP_PSS_FILE] + b[ROLLUP_PSS_SHMEM] !=
          b[ROLLUP_PSS])
    return "the parts of pss add up to it";
  if (b[ROLLUP_SWAP_PSS] > b[ROLLUP_SWAP])
    return "swap_pss <= swap";
  return NULL;
}

static void any_change_keeps_the_relations_of_the_kernel(void **state) {
  (void)state;
  seed = 20240229;
  for (int round = 0; round < 20000; round++) {
    struct rollup rollup = draw_rollup(), got;
    const char *broken;
    struct evidence e;
    struct reading r;

    if (draw(4) == 0)
      forget_some(&rollup);
    e = draw_evidence_at(&rollup);
    r = take(&rollup, &e);
    draw_change(&e, &r);
    estimate_rollup(&r, &e, &got);
    broken = broken_relation(&got);
    if (broken)
      fail_msg("round %d: not so that %s", round, broken);
    assert_int_equal(got.known, rollup.known);
    assert_true(estimate_doubt(&r, &e) <= e.statm.resident_pages * e.page_size);
    assert_true(estimate_broken(&r, &e) <= rollup.bytes[ROLLUP_ANONYMOUS]);
  }
}

/*
 * A model of memory: fork relatives with pages of their own, pages that they
 * share by copy on write and pages of a shared mapping. A bit for each process
 * that maps a page.
 */
#define PROCESSES 6
#define COW_PAGES 200
#define SHM_PAGES 150

struct memory {
  uint32_t n;
  uint64_t own[PROCESSES];
  uint64_t faults[PROCESSES];
  uint8_t cow[COW_PAGES];
  uint8_t shm[SHM_PAGES];
};

static uint64_t users(uint8_t mask) {
  return (uint64_t)__builtin_popcount(mask);
}

static uint8_t all_of(const struct memory *m) {
  return (uint8_t)((1U << m->n) - 1);
}

/* Bytes in 1/4096, as the kernel counts them. */
static uint64_t count_pages(struct rollup *r, const uint8_t *masks, size_t n,
                            uint8_t bit, uint64_t *ret_pages) {
  uint64_t pss = 0;

  for (size_t i = 0; i < n; i++) {
    if (!(masks[i] & bit))
      continue;
    pss += (PAGE << 12) / users(masks[i]);
    (*ret_pages)++;
    add_kb(r, masks[i] == bit ? ROLLUP_PRIVATE_DIRTY : ROLLUP_SHARED_DIRTY,
           PAGE_KB);
  }
  return pss;
}

static uint64_t printed_kb(uint64_t pss) { return pss >> 12 >> 10; }

/* What the kernel would show of process i. */
static struct rollup truth(const struct memory *m, uint32_t i) {
  struct rollup r = {.known = KNOWN};
  uint8_t bit = (uint8_t)(1U << i);
  uint64_t anon = m->own[i], shm = 0;
  uint64_t pss_anon = count_pages(&r, m->cow, COW_PAGES, bit, &anon) +
                      ((m->own[i] * PAGE) << 12);
  uint64_t pss_shm = count_pages(&r, m->shm, SHM_PAGES, bit, &shm);

  add_kb(&r, ROLLUP_PRIVATE_DIRTY, m->own[i] * PAGE_KB);
  add_kb(&r, ROLLUP_ANONYMOUS, anon * PAGE_KB);
  add_kb(&r, ROLLUP_RSS, (anon + shm) * PAGE_KB);
  add_kb(&r, ROLLUP_REFERENCED, (anon + shm) * PAGE_KB);
  add_kb(&r, ROLLUP_PSS_ANON, printed_kb(pss_anon));
  add_kb(&r, ROLLUP_PSS_SHMEM, printed_kb(pss_shm));
  /* The kernel's own sum may be a kB more, for it rounds but once. */
  r.bytes[ROLLUP_PSS] = r.bytes[ROLLUP_PSS_ANON] + r.bytes[ROLLUP_PSS_SHMEM];
  r.bytes[ROLLUP_PSS_DIRTY] = r.bytes[ROLLUP_PSS];
  return r;
}

static struct evidence seen(const struct memory *m, uint32_t i) {
  struct rollup r = truth(m, i);

  return (struct evidence){
      .now_ns = AT,
      .page_size = PAGE,
      .statm = {.resident_pages = r.bytes[ROLLUP_RSS] / PAGE,
                .shared_pages =
                    (r.bytes[ROLLUP_RSS] - r.bytes[ROLLUP_ANONYMOUS]) / PAGE},
      .minor_faults = (uint32_t)m->faults[i],
      .relatives = m->n,
      .cow_breaks = 1,
      .shared_cost = 1,
      .shared_doubt = 1,
      .relatives_doubt = 1};
}

static void read_all(const struct memory *m, struct reading *readings) {
  for (uint32_t i = 0; i < m->n; i++) {
    struct rollup r = truth(m, i);
    struct evidence e = seen(m, i);

    readings[i] = take(&r, &e);
  }
}

static void grow(struct memory *m, uint32_t i, uint64_t pages) {
  m->own[i] += pages;
  m->faults[i] += pages;
}

static void shrink(struct memory *m, uint32_t i, uint64_t pages) {
  m->own[i] -= pages < m->own[i] ? pages : m->own[i];
}

/* A copy takes the place of what was shared. A last user has it already. */
static void write_cow(struct memory *m, uint32_t i, size_t page) {
  uint8_t bit = (uint8_t)(1U << i);

  if (!(m->cow[page] & bit) || m->cow[page] == bit)
    return;
  m->cow[page] &= (uint8_t)~bit;
  m->own[i]++;
  m->faults[i]++;
}

static void change_anything(struct memory *m) {
  uint32_t i = (uint32_t)draw(m->n);
  uint8_t bit = (uint8_t)(1U << i);

  switch (draw(6)) {
  case 0:
    grow(m, i, draw(50));
    break;
  case 1:
    shrink(m, i, draw(50));
    break;
  case 2:
    for (uint64_t n = draw(20); n > 0; n--)
      write_cow(m, i, draw(COW_PAGES));
    break;
  case 3:
    for (uint64_t n = draw(20); n > 0; n--)
      m->cow[draw(COW_PAGES)] &= (uint8_t)~bit;
    break;
  case 4:
    for (uint64_t n = draw(20); n > 0; n--, m->faults[i]++)
      m->shm[draw(SHM_PAGES)] |= bit;
    break;
  default:
    for (uint64_t n = draw(20); n > 0; n--)
      m->shm[draw(SHM_PAGES)] &= (uint8_t)~bit;
  }
}

static struct memory draw_memory(uint32_t least) {
  struct memory m = {.n = least + (uint32_t)draw(PROCESSES + 1 - least)};

  for (uint32_t i = 0; i < m.n; i++)
    m.own[i] = draw(100);
  for (size_t p = draw(COW_PAGES); p < COW_PAGES; p++)
    m.cow[p] = all_of(&m);
  for (size_t p = draw(SHM_PAGES); p < SHM_PAGES; p++)
    m.shm[p] = all_of(&m);
  return m;
}

static void a_reading_after_every_step_leaves_no_error(void **state) {
  struct reading readings[PROCESSES];

  (void)state;
  seed = 1917;
  for (int history = 0; history < 100; history++) {
    struct memory m = draw_memory(1);

    for (int step = 0; step < 50; step++) {
      change_anything(&m);
      read_all(&m, readings);
      for (uint32_t i = 0; i < m.n; i++) {
        struct rollup want = truth(&m, i), got;
        struct evidence e = seen(&m, i);

        estimate_rollup(&readings[i], &e, &got);
        expect_same(&got, &want);
        assert_int_equal(estimate_doubt(&readings[i], &e), 0);
        assert_int_equal(estimate_broken(&readings[i], &e), 0);
      }
    }
  }
}

/* Rss and Anonymous are what statm says, however old the reading is. */
static void any_history_keeps_the_relations_and_rss(void **state) {
  struct reading readings[PROCESSES];

  (void)state;
  seed = 1918;
  for (int history = 0; history < 200; history++) {
    struct memory m = draw_memory(1);

    read_all(&m, readings);
    for (int step = 0; step < 30; step++) {
      change_anything(&m);
      for (uint32_t i = 0; i < m.n; i++) {
        struct rollup want = truth(&m, i), got;
        struct evidence e = seen(&m, i);
        const char *broken;

        estimate_rollup(&readings[i], &e, &got);
        broken = broken_relation(&got);
        if (broken)
          fail_msg("history %d, step %d: not so that %s", history, step,
                   broken);
        assert_true(got.bytes[ROLLUP_RSS] == want.bytes[ROLLUP_RSS]);
        assert_true(got.bytes[ROLLUP_ANONYMOUS] ==
                    want.bytes[ROLLUP_ANONYMOUS]);
      }
    }
  }
}

static void private_histories_are_exact_from_one_reading(void **state) {
  struct reading readings[PROCESSES];

  (void)state;
  seed = 1919;
  for (int history = 0; history < 200; history++) {
    struct memory m = draw_memory(1);

    /* Or else growth and shrinkage between would look like broken sharing. */
    memset(m.cow, 0, sizeof(m.cow));
    read_all(&m, readings);
    for (int step = 0; step < 50; step++) {
      uint32_t i = (uint32_t)draw(m.n);
      struct rollup want, got;
      struct evidence e;

      if (draw(2))
        grow(&m, i, draw(1000));
      else
        shrink(&m, i, draw(1000));
      want = truth(&m, i);
      e = seen(&m, i);
      estimate_rollup(&readings[i], &e, &got);
      expect_same(&got, &want);
      assert_int_equal(estimate_doubt(&readings[i], &e), 0);
    }
  }
}

static void growth_beside_shared_memory_is_exact(void **state) {
  struct reading readings[PROCESSES];

  (void)state;
  seed = 1920;
  for (int history = 0; history < 200; history++) {
    struct memory m = draw_memory(1);

    read_all(&m, readings);
    for (int step = 0; step < 20; step++) {
      uint32_t i = (uint32_t)draw(m.n);
      struct rollup want, got;
      struct evidence e;

      grow(&m, i, draw(1000));
      want = truth(&m, i);
      e = seen(&m, i);
      estimate_rollup(&readings[i], &e, &got);
      assert_true(got.bytes[ROLLUP_PSS] == want.bytes[ROLLUP_PSS]);
      assert_true(uss_of(&got) == uss_of(&want));
      assert_true(got.bytes[ROLLUP_RSS] == want.bytes[ROLLUP_RSS]);
      assert_int_equal(estimate_doubt(&readings[i], &e), 0);
    }
  }
}

static void expect_near(const char *what, uint64_t got, uint64_t want,
                        uint64_t within) {
  if (got + within < want || got > want + within)
    fail_msg("%s is %ju, not %ju", what, (uintmax_t)got, (uintmax_t)want);
}

/*
 * One of three or more writes. Nobody becomes the last user by that, so what
 * it broke is all that changes, and its relatives pay more for the rest.
 */
static void broken_sharing_is_followed_from_one_reading(void **state) {
  struct reading readings[PROCESSES];

  (void)state;
  seed = 1921;
  for (int history = 0; history < 200; history++) {
    struct memory m = draw_memory(3);
    double broken_share = 0;

    read_all(&m, readings);
    for (int step = 0; step < 20; step++) {
      for (uint64_t n = draw(20); n > 0; n--)
        write_cow(&m, 0, draw(COW_PAGES));
      if (draw(3) == 0)
        grow(&m, 0, draw(20));
      for (uint32_t i = 0; i < m.n; i++) {
        struct rollup want = truth(&m, i), got;
        struct evidence e = seen(&m, i);

        if (i > 0)
          e.broken_by_relatives = (uint64_t)broken_share;
        estimate_rollup(&readings[i], &e, &got);
        assert_true(uss_of(&got) == uss_of(&want));
        assert_true(shared_of(&got) == shared_of(&want));
        assert_true(got.bytes[ROLLUP_RSS] == want.bytes[ROLLUP_RSS]);
        /* Pss is printed in whole kB, and so is what it was divided from. */
        expect_near("pss", got.bytes[ROLLUP_PSS], want.bytes[ROLLUP_PSS],
                    4 * KIB);
        expect_near("pss_anon", got.bytes[ROLLUP_PSS_ANON],
                    want.bytes[ROLLUP_PSS_ANON], 4 * KIB);
        assert_int_equal(estimate_doubt(&readings[i], &e), 0);
        if (i == 0)
          broken_share =
              (double)estimate_broken(&readings[0], &e) / (m.n * (m.n - 1));
      }
    }
  }
}

/* From a reading of a worker, with some of it put otherwise. */
static struct rollup estimate_from(const uint32_t *kb,
                                   const struct evidence *at, int anon_pages,
                                   int faults, int relatives) {
  const struct step s = {
      .anon = anon_pages, .faults = faults, .relatives = relatives};
  struct evidence e = evidence_after(at, &s);
  struct rollup rollup = in_kb(kb), got;
  struct reading r = take(&rollup, at);

  estimate_rollup(&r, &e, &got);
  return got;
}

/* The worker, and 300 kB of a file that only it maps: its memory shared by copy
 * on write is as much as before. */
static void sharing_is_broken_beside_private_file_pages(void **state) {
  struct evidence at = worker_at_reading;
  uint32_t kb[ROLLUP_FIELDS];
  struct rollup got;

  (void)state;
  memcpy(kb, worker_kb, sizeof(kb));
  kb[ROLLUP_RSS] += 300;
  kb[ROLLUP_PSS] += 300;
  kb[ROLLUP_PSS_FILE] += 300;
  kb[ROLLUP_PRIVATE_CLEAN] += 300;
  at.statm.resident_pages += 75;
  at.statm.shared_pages += 75;
  got = estimate_from(kb, &at, 0, 75, 0);
  expect_kb("75 faults", "uss", uss_of(&got), 700 + 300);
  expect_kb("75 faults", "pss", got.bytes[ROLLUP_PSS], 850 + 225);
}

/* The worker unmaps all but 20 kB of what it shares, having first unmapped all
 * of its own: its pss_anon was a quarter of that. */
static void pss_anon_stays_within_anonymous(void **state) {
  struct rollup got = estimate_from(worker_kb, &worker_at_reading, -195, 0, 0);

  (void)state;
  expect_kb("unmapped", "anonymous", got.bytes[ROLLUP_ANONYMOUS], 20);
  assert_in_range(got.bytes[ROLLUP_PSS_ANON], 0, 20 * KIB);
  expect_kb("unmapped", "pss_anon", got.bytes[ROLLUP_PSS_ANON], 5);
  expect_kb("unmapped", "pss", got.bytes[ROLLUP_PSS], 55);
}

/* 400 of its own; the anonymous memory of 150 is as it was. */
static void cost_of_sharing_scales_files_and_shmem_alone(void **state) {
  struct evidence e = worker_at_reading;
  struct rollup rollup = in_kb(worker_kb), got;
  struct reading r = take(&rollup, &e);

  (void)state;
  e.shared_cost = 0.5;
  estimate_rollup(&r, &e, &got);
  expect_kb("half", "pss", got.bytes[ROLLUP_PSS], 525);
  expect_kb("half", "pss_anon", got.bytes[ROLLUP_PSS_ANON], 500);
  expect_kb("half", "pss_file", got.bytes[ROLLUP_PSS_FILE], 25);
  expect_kb("half", "uss", uss_of(&got), 400);
  e.shared_cost = 2;
  e.statm.resident_pages += 10;
  e.statm.shared_pages += 10;
  estimate_rollup(&r, &e, &got);
  /* Each of the ten pages costs half of it, as much as those before. */
  expect_kb("twice", "pss", got.bytes[ROLLUP_PSS], 550 + 50 + 20);
}

/* 50 kB is what its files cost it; ten pages more cost 10 kB or up to 40. */
static void
doubt_of_sharing_is_by_what_moved_and_what_was_learnt(void **state) {
  static const struct {
    int shared_pages;
    double moved, learnt, doubt;
  } cases[] = {
      {0, 0, 1, 0},   {0, 0.5, 1, 25},       {0, 0.5, 0.1, 2.5}, {0, 1, 0, 0},
      {10, 0, 1, 30}, {10, 0.5, 1, 30 + 25}, {10, 0, 0.2, 6},    {10, 0, 0, 5},
  };
  struct rollup rollup = in_kb(worker_kb);
  struct reading r = take(&rollup, &worker_at_reading);

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct evidence e = worker_at_reading;

    e.statm.shared_pages += (uint64_t)cases[i].shared_pages;
    e.statm.resident_pages += (uint64_t)cases[i].shared_pages;
    e.shared_moved = cases[i].moved;
    e.shared_doubt = cases[i].learnt;
    expect_kb("case", "doubt", estimate_doubt(&r, &e), cases[i].doubt);
  }
}

/* Twice as many relatives: 400 of its own, 50 and 25 of what is shared. */
static void relatives_do_not_scale_what_is_private(void **state) {
  struct rollup got = estimate_from(worker_kb, &worker_at_reading, 0, 0, 4);

  (void)state;
  assert_true(got.bytes[ROLLUP_PSS_DIRTY] >= got.bytes[ROLLUP_PRIVATE_DIRTY]);
  expect_kb("relatives", "pss_anon", got.bytes[ROLLUP_PSS_ANON], 450);
  expect_kb("relatives", "pss_file", got.bytes[ROLLUP_PSS_FILE], 25);
  expect_kb("relatives", "pss_dirty", got.bytes[ROLLUP_PSS_DIRTY], 450);
}

/* CONFIG_NO_PAGE_MAPCOUNT calls a large folio private that is mapped twice
 * (usage.h): then uss is no more than pss, and not pss as much as uss. */
static void private_above_pss_does_not_raise_pss(void **state) {
  static const uint32_t kb[ROLLUP_FIELDS] = {
      [ROLLUP_RSS] = 800,           [ROLLUP_PSS] = 400,
      [ROLLUP_PSS_DIRTY] = 400,     [ROLLUP_PSS_ANON] = 400,
      [ROLLUP_PRIVATE_DIRTY] = 800, [ROLLUP_ANONYMOUS] = 800,
  };
  struct evidence at = loner_at_reading;
  struct rollup got;

  (void)state;
  at.statm.shared_pages = 0;
  got = estimate_from(kb, &at, 1, 1, 0);
  expect_kb("one page more", "pss", got.bytes[ROLLUP_PSS], 404);
}

/* The kernel's Locked is the pss of what is locked. */
static void locked_stays_within_pss(void **state) {
  uint32_t kb[ROLLUP_FIELDS];
  struct rollup got;

  (void)state;
  memcpy(kb, loner_kb, sizeof(kb));
  kb[ROLLUP_LOCKED] = 700;
  got = estimate_from(kb, &loner_at_reading, -100, 0, 0);
  expect_kb("unmapped", "pss", got.bytes[ROLLUP_PSS], 300);
  assert_in_range(got.bytes[ROLLUP_LOCKED], 0, 300 * KIB);
}

/* The worker with 40 kB of its sharing in shmem and 10 in files. */
static struct reading read_sharer(void) {
  uint32_t kb[ROLLUP_FIELDS];
  struct rollup rollup;

  memcpy(kb, worker_kb, sizeof(kb));
  kb[ROLLUP_PSS_FILE] = 10;
  kb[ROLLUP_PSS_SHMEM] = 40;
  rollup = in_kb(kb);
  return take(&rollup, &worker_at_reading);
}

/* Whatever its set is of gets cheaper and is in doubt, the other is as it was.
 */
static void a_set_is_of_shmem_or_of_files(void **state) {
  static const struct {
    bool is_of_shmem;
    double file, shmem, doubt;
  } cases[] = {{true, 10, 20, 20}, {false, 5, 40, 5}};
  struct reading r = read_sharer();

  (void)state;
  for (size_t i = 0; i < 2; i++) {
    struct evidence e = worker_at_reading;
    struct rollup got;

    e.is_of_shmem = cases[i].is_of_shmem;
    e.shared_cost = 0.5;
    e.shared_moved = 0.5;
    estimate_rollup(&r, &e, &got);
    expect_kb("set", "pss_file", got.bytes[ROLLUP_PSS_FILE], cases[i].file);
    expect_kb("set", "pss_shmem", got.bytes[ROLLUP_PSS_SHMEM], cases[i].shmem);
    expect_kb("set", "pss", got.bytes[ROLLUP_PSS],
              500 + cases[i].file + cases[i].shmem);
    expect_kb("set", "shared pss", estimate_shared_pss(&r, &got, e.is_of_shmem),
              e.is_of_shmem ? cases[i].shmem : cases[i].file);
    expect_kb("set", "doubt", estimate_shared_doubt(&r, &e), cases[i].doubt);
    expect_kb("set", "doubt of all", estimate_doubt(&r, &e), cases[i].doubt);
  }
}

/* With twice as many relatives each pays half of the other kind as well. */
static void relatives_share_the_other_kind_by_their_number(void **state) {
  static const struct {
    bool is_of_shmem;
    double file, shmem;
  } cases[] = {{true, 5, 40}, {false, 10, 20}};
  struct reading r = read_sharer();

  (void)state;
  for (size_t i = 0; i < 2; i++) {
    struct evidence e = worker_at_reading;
    struct rollup got;

    e.is_of_shmem = cases[i].is_of_shmem;
    e.relatives = 8;
    estimate_rollup(&r, &e, &got);
    expect_kb("relatives", "pss_file", got.bytes[ROLLUP_PSS_FILE],
              cases[i].file);
    expect_kb("relatives", "pss_shmem", got.bytes[ROLLUP_PSS_SHMEM],
              cases[i].shmem);
  }
}

/* What was its own at the reading is not of the set. */
static void shared_pss_is_without_what_nobody_else_maps(void **state) {
  static const uint32_t kb[ROLLUP_FIELDS] = {
      [ROLLUP_RSS] = 1000,          [ROLLUP_PSS] = 700,
      [ROLLUP_PSS_SHMEM] = 700,     [ROLLUP_SHARED_DIRTY] = 600,
      [ROLLUP_PRIVATE_DIRTY] = 400,
  };
  struct rollup rollup = in_kb(kb);
  struct evidence e = loner_at_reading;
  struct reading r;

  (void)state;
  e.statm = (struct statm_sample){.resident_pages = 250, .shared_pages = 250};
  r = take(&rollup, &e);
  expect_kb("own", "shmem", estimate_shared_pss(&r, &rollup, true), 300);
  expect_kb("own", "files", estimate_shared_pss(&r, &rollup, false), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_changed_says_what_a_worker_uses),
      cmocka_unit_test(the_count_of_faults_goes_round),
      cmocka_unit_test(private_memory_that_comes_and_goes_is_exact),
      cmocka_unit_test(nothing_changed_gives_the_very_reading),
      cmocka_unit_test(relatives_scale_what_is_shared),
      cmocka_unit_test(what_was_broken_is_told),
      cmocka_unit_test(shmem_grows_where_shmem_is_what_there_is),
      cmocka_unit_test(shared_growth_from_nothing_counts_in_full),
      cmocka_unit_test(fields_that_the_kernel_lacks_stay_unknown),
      cmocka_unit_test(without_pss_anon_no_broken_sharing_is_seen),
      cmocka_unit_test(amounts_that_do_not_fit_are_refused),
      cmocka_unit_test(any_change_keeps_the_relations_of_the_kernel),
      cmocka_unit_test(a_reading_after_every_step_leaves_no_error),
      cmocka_unit_test(any_history_keeps_the_relations_and_rss),
      cmocka_unit_test(private_histories_are_exact_from_one_reading),
      cmocka_unit_test(growth_beside_shared_memory_is_exact),
      cmocka_unit_test(broken_sharing_is_followed_from_one_reading),
      cmocka_unit_test(sharing_is_broken_beside_private_file_pages),
      cmocka_unit_test(pss_anon_stays_within_anonymous),
      cmocka_unit_test(relatives_do_not_scale_what_is_private),
      cmocka_unit_test(cost_of_sharing_scales_files_and_shmem_alone),
      cmocka_unit_test(doubt_of_sharing_is_by_what_moved_and_what_was_learnt),
      cmocka_unit_test(private_above_pss_does_not_raise_pss),
      cmocka_unit_test(locked_stays_within_pss),
      cmocka_unit_test(a_set_is_of_shmem_or_of_files),
      cmocka_unit_test(relatives_share_the_other_kind_by_their_number),
      cmocka_unit_test(shared_pss_is_without_what_nobody_else_maps),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
