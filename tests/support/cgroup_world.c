#include "cgroup_world.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

void cgroup_put(const struct world *w, const char *path, const char *text) {
  char name[300];

  snprintf(name, sizeof(name), CGROUPS "%s", path);
  proctree_write(&w->tree, name, text, strlen(text));
}

void cgroup_make(const struct world *w, const char *path, const char *use) {
  char name[256];

  snprintf(name, sizeof(name), "%s/memory.current", path);
  cgroup_put(w, name, use);
  snprintf(name, sizeof(name), "%s/memory.max", path);
  cgroup_put(w, name, "max\n");
}

void cgroup_remove(const struct world *w, const char *path) {
  static unsigned removed;
  char from[256], to[32];

  snprintf(from, sizeof(from), CGROUPS "%s", path);
  snprintf(to, sizeof(to), "removed.%u", removed++);
  proctree_rename(&w->tree, from, to);
}

void cgroup_kill(const struct world *w, const char *path, unsigned all) {
  char name[256], text[64];

  snprintf(name, sizeof(name), "%s/memory.events", path);
  snprintf(text, sizeof(text), "low 0\noom 7\noom_kill %u\n", all);
  cgroup_put(w, name, text);
}

void kill_on_host(const struct world *w, unsigned all) {
  proctree_print(&w->tree, 0, "vmstat", "pgfault 17\noom_kill %u\n", all);
}

void cgroup_join(const struct world *w, uint32_t pid, const char *comm,
                 const char *cgroup) {
  struct fake f = process(pid, comm);

  f.cgroup = cgroup;
  world_put(w, f);
}

void kill_web(const struct world *w, unsigned all) {
  cgroup_kill(w, WEB, all);
  kill_on_host(w, all);
}

void start_web(struct world *w) {
  cgroup_make(w, WEB, "1000\n");
  cgroup_join(w, 10, "web", WEB);
  world_put(w, process(9, "outside"));
  world_group(w, "%{unit}", "Unit", "*", NULL, NULL);
}

const struct group *group_of(const struct world *w, const char *name) {
  const struct group *g = world_find(w, name);

  if (!g)
    fail_msg("%s is not there", name);
  return g;
}

void assert_absent(const struct world *w, const char *name,
                   enum cgroup_absence why) {
  const struct group *g = group_of(w, name);

  if (g->cgroup || g->cgroup_absence != why)
    fail_msg("%s: %s, %d and not %d", name, g->cgroup ? g->cgroup->path : "-",
             g->cgroup_absence, why);
}

void assert_path(const struct world *w, const char *name, const char *path) {
  const struct group *g = group_of(w, name);

  if (!g->cgroup)
    fail_msg("%s has none: %d", name, g->cgroup_absence);
  assert_string_equal(g->cgroup->path, path);
  assert_int_equal(g->cgroup_absence, CGROUP_PRESENT);
}

void expect_absent(struct world *w, const char *name, enum cgroup_absence why) {
  world_run(w, 10);
  assert_absent(w, name, why);
}

void expect_path(struct world *w, const char *name, const char *path) {
  world_run(w, 10);
  assert_path(w, name, path);
}
