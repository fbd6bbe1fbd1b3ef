/* Works by the linker's --wrap, for all unit tests (tests.mk). */
#include "machine.h"

#include <stdlib.h>
#include <unistd.h>

#include <smaps/worker_pool.h>

static long page_size = 4096;

void machine_set_page_size(long bytes) { page_size = bytes; }

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name) {
  return name == _SC_PAGESIZE ? page_size : __real_sysconf(name);
}

static uint64_t slowness(void) {
  const char *text = getenv("MACHINE_SLOWNESS");
  uint64_t n = text ? strtoull(text, NULL, 10) : 1;

  return n ? n : 1;
}

int __real_worker_pool_new(const struct worker_ops *ops, uint64_t timeout_ns,
                           uint64_t wait_budget_ns, struct worker_pool **ret);
int __wrap_worker_pool_new(const struct worker_ops *ops, uint64_t timeout_ns,
                           uint64_t wait_budget_ns, struct worker_pool **ret);
int __wrap_worker_pool_new(const struct worker_ops *ops, uint64_t timeout_ns,
                           uint64_t wait_budget_ns, struct worker_pool **ret) {
  return __real_worker_pool_new(ops, slowness() * timeout_ns,
                                slowness() * wait_budget_ns, ret);
}
