/* SPDX-License-Identifier: MIT */
#include "measured.h"

int measured_setup(void **state) {
  struct world *w;

  world_setup(state);
  w = *state;
  w->settings.policy.refresh = REFRESH_ADAPTIVE;
  return 0;
}

unsigned measured_reads(const struct world *w) {
  return (unsigned)world_counts(w)->rollup_reads;
}

void measured_group(struct world *w, const char *name) {
  world_group(w, name, "Comm", name, NULL, NULL);
}

struct fake measured_member(uint32_t pid, const char *comm) {
  struct fake f = fake_process(pid, comm);

  f.size = 10000;
  f.private_kb = 6144;
  f.shared_kb = 2048;
  return f;
}

struct fake measured_large(uint32_t pid, const char *comm, unsigned gib) {
  struct fake f = measured_member(pid, comm);

  f.private_kb = gib << 20;
  f.size = (gib + 1) << 18;
  return f;
}

struct fake measured_sharer(uint32_t pid, const char *comm) {
  struct fake f = measured_member(pid, comm);

  f.cow_kb = f.shared_kb;
  f.faults = 5000;
  return f;
}

void measured_put_faulted(struct world *w, struct fake f) {
  f.faults += 512;
  world_put(w, f);
}
