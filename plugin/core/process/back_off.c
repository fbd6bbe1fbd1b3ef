#include "process/back_off.h"

#include <assert.h>

#define BACK_OFF_MAX_NS (UINT64_C(3600) * 1000000000)

static uint64_t length_ns(uint64_t read_timeout_ns, unsigned hangs) {
  uint64_t ns = 2 * read_timeout_ns;

  assert(hangs > 0);
  while (--hangs > 0 && ns < BACK_OFF_MAX_NS)
    ns *= 2;
  return ns < BACK_OFF_MAX_NS ? ns : BACK_OFF_MAX_NS;
}

void back_off_extend(struct back_off *b, bool has_waited,
                     uint64_t read_timeout_ns, uint64_t now_ns) {
  if ((has_waited || !b->hangs) && b->hangs < UINT8_MAX)
    b->hangs++;
  b->until_ns = now_ns + length_ns(read_timeout_ns, b->hangs);
}

void back_off_forgive(struct back_off *b) { b->hangs = 0; }

bool back_off_is_on(const struct back_off *b, uint64_t now_ns) {
  return now_ns < b->until_ns;
}
