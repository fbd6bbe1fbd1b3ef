#include "documented.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

parsed document;

int documented_setup(void **state) {
  struct world *w;

  document = NULL;
  world_setup(state);
  w = *state;
  world_keep_state(w);
  w->settings.state_interval_ns = 0;
  w->settings.interval_ns = 10 * NS_PER_S;
  w->settings.host = strdup("node\"1\"");
  return 0;
}

int documented_teardown(void **state) {
  parsed_free(document);
  return world_teardown(state);
}

parsed next_state(struct world *w) {
  size_t n = world_n_written();

  world_run(w, 10);
  assert_int_equal(collector_snapshot_error(w->collector), 0);
  assert_int_equal(world_written(n)->error, 0);
  parsed_free(document);
  document = parsed_file(world_written(n)->path);
  return document;
}

parsed capture(struct world *w, const char *group) {
  world_keep_captures(w);
  free(w->settings.state_file);
  w->settings.state_file = NULL;
  world_run(w, 10);
  world_raise(w, group);
  return next_state(w);
}

struct fake fake_member(uint32_t pid, const char *comm) {
  struct fake f = fake_process(pid, comm);

  f.threads = 2;
  f.size = 10000;
  f.text = 10;
  f.data = 20;
  f.private_kb = 6144;
  f.shared_kb = 2048;
  return f;
}

struct rule *add_group(struct world *w, const char *name) {
  return world_group(w, name, "Comm", name, NULL, NULL);
}

parsed of(parsed d, uint64_t pid) { return parsed_process(d, pid); }

void assert_source(parsed d, uint64_t pid, const char *source) {
  assert_string_equal(parsed_string(of(d, pid), "source"), source);
}

void assert_lacks(parsed p, const char *path) {
  if (parsed_get(p, path))
    fail_msg("%s is there", path);
}
