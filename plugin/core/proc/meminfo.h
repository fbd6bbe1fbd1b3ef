/* /proc/meminfo (proc(5); fs/proc/meminfo.c): "Key:   value kB" lines. */
#ifndef SMAPS_MEMINFO_H
#define SMAPS_MEMINFO_H

#include <smaps/text.h>

struct meminfo_sample {
  uint64_t mem_total_bytes;
  uint64_t mem_available_bytes; /* 0 if missing (before 3.14) */
  uint64_t swap_used_bytes;     /* SwapTotal - SwapFree; 0 if missing */
  /* Pages that any process maps, each once; 0 if missing. */
  uint64_t anon_pages_bytes;
  uint64_t mapped_bytes; /* of files and shmem */
};

/*
 * Returns 0 and fills *ret, or returns -EBADMSG and leaves *ret unchanged if
 * MemTotal is missing or zero, or a value is no number.
 */
int meminfo_parse(const char *text, size_t len, struct meminfo_sample *ret);

#endif
