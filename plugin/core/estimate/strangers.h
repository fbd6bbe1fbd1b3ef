/*
 * Processes that share the memory of another by copy on write, as its reading
 * shows, although they are not known as its relatives. Mostly it is a child
 * that was forked after the processes were listed, and whose end is not seen.
 */
#ifndef SMAPS_STRANGERS_H
#define SMAPS_STRANGERS_H

#include "proc/rollup.h"
#include <stdbool.h>

enum strangers {
  STRANGERS_NONE,
  STRANGERS_NEW,    /* they may end unseen as well */
  STRANGERS_LASTING /* another reading has shown them too */
};

/* How many they are, beside so many relatives that are known. The process is
 * one of its relatives itself. vm_swap_kb: VmSwap, which is without shmem. */
uint32_t strangers_seen(const struct rollup *found, uint32_t vm_swap_kb,
                        uint32_t relatives);

/* Whether there are none: strangers_seen() has the least number of them, and
 * where not all of the relatives share everything that can be too few. So the
 * mean has to be that of all of them, no more and no less. */
bool strangers_are_ruled_out(const struct rollup *found, uint32_t vm_swap_kb,
                             uint32_t relatives);

/* By how much Pss and SwapPss are short of the memory that is so shared. Pages
 * that KSM has merged are not: these are shared with anybody. */
uint64_t strangers_bytes(const struct rollup *found, uint32_t vm_swap_kb);

/* Whether so much sharing is more than there was at the reading before. */
bool strangers_have_come(uint64_t bytes_before, uint64_t bytes);

/* By how much Pss is short, if so many strangers are children that are in no
 * list, whose part nobody else pays; or by how much it becomes larger, where
 * they are counted and are not. */
double strangers_part(const struct rollup *found, uint32_t relatives,
                      uint32_t strangers);

#endif
