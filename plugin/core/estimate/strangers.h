/*
 * Strangers: processes that share the memory of another by copy on write, as
 * its reading shows, but are not known as its relatives. Mostly these are
 * children that were forked after the processes were listed, and end unseen.
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

/* The least number of strangers. relatives: the number of known relatives,
 * including the process. vm_swap_kb: VmSwap, which is without shmem. */
uint32_t strangers_seen(const struct rollup *found, uint32_t vm_swap_kb,
                        uint32_t relatives);

/* True if there are certainly no strangers. strangers_seen() can return too few
 * if some relatives do not share everything; so this demands that exactly all
 * relatives share. */
bool strangers_are_ruled_out(const struct rollup *found, uint32_t vm_swap_kb,
                             uint32_t relatives);

/* The memory shared by copy on write, less the process's part of it. Without
 * pages that KSM has merged: any process may share these. */
uint64_t strangers_bytes(const struct rollup *found, uint32_t vm_swap_kb);

/* True if clearly more is shared than at the last reading. */
bool strangers_have_come(uint64_t bytes_before, uint64_t bytes);

/* How much Pss is too low if so many strangers are unlisted children, whose
 * part no listed process pays; or too high, if they are counted but do not
 * exist. */
double strangers_part(const struct rollup *found, uint32_t relatives,
                      uint32_t strangers);

#endif
