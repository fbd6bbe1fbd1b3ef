#include <smaps/back_off.h>

#define LONGEST_NS (UINT64_C(3600) * 1000000000)

/* stalls: 1 at least. */
static uint64_t length_ns(uint64_t stall_timeout_ns, unsigned stalls) {
  uint64_t ns = 2 * stall_timeout_ns;

  while (--stalls > 0 && ns < LONGEST_NS)
    ns *= 2;
  return ns < LONGEST_NS ? ns : LONGEST_NS;
}

void back_off_extend(struct back_off *b, bool has_waited,
                     uint64_t stall_timeout_ns, uint64_t now_ns) {
  if ((has_waited || !b->stalls) && b->stalls < UINT8_MAX)
    b->stalls++;
  b->until_ns = now_ns + length_ns(stall_timeout_ns, b->stalls);
}

void back_off_forgive(struct back_off *b) { b->stalls = 0; }

bool back_off_is_on(const struct back_off *b, uint64_t now_ns) {
  return now_ns < b->until_ns;
}
