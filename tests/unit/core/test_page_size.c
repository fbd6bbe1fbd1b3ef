/* SPDX-License-Identifier: MIT */
/* Kernels of arm64, ppc64el and others can have pages of 16 or 64 KiB. */
#include "test.h"

#include <string.h>
#include <sys/utsname.h>

#include "world.h"

/* A kernel whose statm is exact, as the estimates below are. */
int __wrap_uname(struct utsname *u);
int __wrap_uname(struct utsname *u) {
  *u = (struct utsname){.release = "6.18.0"};
  return 0;
}

static struct fake process(uint32_t pid, unsigned private_kb) {
  struct fake f = fake_process(pid, "g");

  f.size = 1000;
  f.text = 30;
  f.data = 50;
  f.private_kb = private_kb;
  f.shared_kb = 4096;
  return f;
}

static void expect_kb(const struct world *w, const char *metric, unsigned kb) {
  if (world_kb(w, "g", metric) != kb)
    fail_msg("%s is %.3f kB and not %u", metric, world_kb(w, "g", metric), kb);
}

/* Of readings, and of what statm has gained since then: pages that nobody else
 * can have. */
static void follow(struct world *w, unsigned page_kb) {
  const unsigned n = 20;

  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  w->settings.policy.max_age_ns = 3600 * NS;
  for (unsigned grown_kb = 0; grown_kb < 5 * page_kb; grown_kb += page_kb) {
    for (uint32_t i = 0; i < n; i++)
      world_put(w, process(10 + i, 65536 + grown_kb));
    world_run(w, 1);
    assert_int_equal(world_counts(w)->rollup_reads, grown_kb ? 0 : n);
    expect_kb(w, "ps_vm", n * 1000 * page_kb);
    expect_kb(w, "ps_code", n * 30 * page_kb);
    expect_kb(w, "ps_data", n * 50 * page_kb);
    expect_kb(w, "resident", n * (65536 + grown_kb + 4096));
    expect_kb(w, "resident_shared", n * 4096);
    expect_kb(w, "rss", n * (65536 + grown_kb + 4096));
    expect_kb(w, "uss", n * (65536 + grown_kb));
    expect_kb(w, "pss", n * (65536 + grown_kb + 2048));
    assert_true(world_kb(w, "g", "pss_error") < 2048);
  }
}

/* The kernel's values are whole pages. */
TEST(sums_have_what_was_read_and_what_has_grown_since) {
  static const long page_sizes[] = {65536, 16384, 4096};

  for (size_t i = 0; i < LENGTH(page_sizes); i++) {
    struct world w;

    test_set_page_size(page_sizes[i]);
    print_message("pages of %ld bytes\n", page_sizes[i]);
    world_make(&w);
    world_group(&w, "g", "Comm", "g", NULL, NULL);
    follow(&w, (unsigned)page_sizes[i] / 1024);
    world_remove(&w);
  }
}

/* The tree of another machine, with a file of its units. */
TEST(a_captured_tree_has_pages_and_ticks_of_its_own) {
  struct fake f = process(10, 65536);
  struct world w;

  test_set_page_size(65536);
  world_make(&w);
  world_group(&w, "g", "Comm", "g", NULL, NULL);
  f.starttime = 2500;
  world_put(&w, f);
  proctree_print(&w.tree, 0, "uptime", "110.00 7.00\n");
  proctree_print(&w.tree, 0, "getconf", "PAGESIZE 65536\nCLK_TCK 250\n");
  test_set_page_size(4096);
  world_run(&w, 0);
  expect_kb(&w, "ps_vm", 64000);
  expect_kb(&w, "resident", 65536 + 4096);
  world_assert(&w, "g", "pss=%uk pss_error=0 uptime=100", 65536 + 2048);
  world_expect(&w, 1, "g", "pss=%uk pss_error=0 uptime=100", 65536 + 2048);
  world_remove(&w);
}
