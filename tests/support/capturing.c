/* SPDX-License-Identifier: MIT */
#include "capturing.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

parsed capturing_document;

int capturing_setup(void **state) {
  struct world *w;

  capturing_document = NULL;
  world_setup(state);
  w = *state;
  world_keep_captures(w);
  w->settings.interval_ns = 10 * NS_PER_S;
  return 0;
}

int capturing_teardown(void **state) {
  parsed_free(capturing_document);
  return world_teardown(state);
}

void capturing_put(struct world *w, uint32_t pid, const char *comm,
                   unsigned kb) {
  struct fake f = fake_process(pid, comm);

  f.private_kb = kb;
  world_put_mapped(w, f, comm);
}

void capturing_group(struct world *w, const char *name) {
  world_group(w, name, "Comm", name, NULL, NULL);
}

void capturing_put_many(struct world *w, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    capturing_put(w, 10 + i, "g", 1000 + 100 * i);
  capturing_group(w, "g");
}

void capturing_cycle(struct world *w) {
  world_run(w, 10);
  assert_true(collector_results(w->collector)->snapshot_error >= 0);
}

void capturing_raise(struct world *w, const char *name) {
  capturing_cycle(w);
  world_raise(w, name);
}

parsed capturing_read(void) {
  assert_int_equal(world_written(0)->error, 0);
  capturing_document = parsed_file(world_written(0)->path);
  return capturing_document;
}

void capturing_assert_members(parsed d, const char *pids, uint64_t left_out) {
  char found[256] = "";

  for (size_t i = 0; i < parsed_count(d, "processes"); i++) {
    char path[48];
    size_t len = strlen(found);

    snprintf(path, sizeof(path), "processes.%zu.pid", i);
    snprintf(found + len, sizeof(found) - len, "%s%u", i ? " " : "",
             (unsigned)parsed_integer(d, path));
  }
  assert_string_equal(found, pids);
  assert_int_equal(parsed_integer(d, "left_out"), left_out);
}

parsed capturing_run(struct world *w, const char *name) {
  capturing_raise(w, name);
  capturing_cycle(w);
  return capturing_read();
}
