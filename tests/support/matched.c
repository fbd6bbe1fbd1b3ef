#include "matched.h"

#include "test.h"
#include <stdio.h>

struct fake named(uint32_t pid, uint32_t ppid, const char *comm) {
  struct fake f = fake_process(pid, comm);

  f.ppid = ppid;
  f.starttime = pid * 10;
  f.private_kb = 100;
  return f;
}

void put(struct world *w, uint32_t pid, uint32_t ppid, const char *comm) {
  world_put(w, named(pid, ppid, comm));
}

void put_all(struct world *w, const char *processes) {
  unsigned pid, ppid;
  char comm[16];
  int len;

  for (; sscanf(processes, "%u %u %15[^,]%n", &pid, &ppid, comm, &len) == 3;
       processes += processes[len] ? len + 1 : len)
    put(w, pid, ppid, comm);
  assert_string_equal(processes, "");
}

void exec(struct world *w, uint32_t pid, uint32_t ppid, const char *comm) {
  struct fake f = named(pid, ppid, comm);

  f.size = 999;
  world_put(w, f);
}

void put_in_unit(struct world *w, uint32_t pid, const char *cgroup,
                 unsigned uid) {
  struct fake f = named(pid, 1, "daemon");

  f.cgroup = cgroup;
  f.uid = uid;
  world_put(w, f);
}

void group_servers(struct world *w) {
  world_group(w, "server", "Comm", "server", NULL, NULL)->takes_children = true;
  world_other(w, "rest");
}

unsigned unidentified(const struct world *w) {
  return (unsigned)world_counts(w)->unidentified;
}
