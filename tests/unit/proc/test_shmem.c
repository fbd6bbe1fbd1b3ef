/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <string.h>

#include "proc/shmem.h"

/* Lines of maps, as Linux 6.18 prints them. */
#define AT "7f0000000000-7f0000100000 "

static struct shmem_mappings sum(const char *text) {
  struct shmem_mappings m = {.forked = 0};
  struct cursor s = cursor_begin(text, strlen(text));
  struct rollup_line line = {0};

  while (!cursor_is_done(&s)) {
    assert_true(rollup_line_next(&s, &line));
    shmem_mappings_add(&m, &line);
  }
  return m;
}

TEST(mappings_are_told_apart_by_their_names) {
  static const struct {
    const char *text;
    unsigned forked, passed, lasting; /* MiB */
  } cases[] = {
      {AT "rw-s 00000000 00:01 1027 /dev/zero (deleted)\n", 1, 0, 0},
      {AT "rw-s 00000000 00:01 1027 [anon_shmem:buffers]\n", 1, 0, 0},
      {AT "rw-s 00000000 00:01 1028 /memfd:heap (deleted)\n", 0, 1, 0},
      {AT "rw-s 00000000 00:1a 7 /dev/shm/x (deleted)\n", 0, 1, 0},
      {AT "rw-s 00000000 00:01 3 /SYSV00000000 (deleted)\n", 0, 0, 1},
      {AT "rw-s 00000000 00:1a 7 /dev/shm/PostgreSQL.1\n", 0, 0, 1},
      {AT "r--s 00000000 00:1b 7 /run/log/journal/a.journal\n", 0, 0, 1},
      /* A disk, a device, private memory, and what is not shmem. */
      {AT "rw-s 00000000 fd:01 7 /var/lib/x\n", 0, 0, 0},
      {AT "rw-s 00000000 fd:01 7 /var/lib/x (deleted)\n", 0, 0, 0},
      {AT "rw-s 00000000 00:05 7 /dev/dri/card0\n", 0, 0, 0},
      {AT "rw-p 00000000 00:1a 7 /dev/shm/x\n", 0, 0, 0},
      {AT "rw-p 00000000 00:00 0 [heap]\n", 0, 0, 0},
      {AT "rw-p 00000000 00:00 0 \n", 0, 0, 0},
      {AT "rw-s 00000000 00:0e 7 anon_inode:[io_uring]\n", 0, 0, 0},
      {AT "rw-s 00000000 00:09 7 socket:[5]\n", 0, 0, 0},
      {AT
       "rw-s 00000000 00:01 1 /dev/zero (deleted)\n"
       "7f0000200000-7f0000500000 rw-s 00000000 00:01 2 /memfd:a (deleted)\n",
       1, 3, 0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct shmem_mappings m = sum(cases[i].text);

    if (m.forked != cases[i].forked * MIB ||
        m.passed != cases[i].passed * MIB ||
        m.lasting != cases[i].lasting * MIB)
      fail_msg("%s", cases[i].text);
  }
}
