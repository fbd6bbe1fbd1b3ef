/* SPDX-License-Identifier: MIT */
/*
 * A machine whose memory is known page by page. Processes fork, touch, write,
 * unmap, swap, exec and exit; for each of them the world knows what the kernel
 * would print: its rollup, statm, minor faults and VmSwap.
 *
 * Processes have a slot. An operation on a slot without a process, or a fork
 * into a slot that has one, does nothing: so any part of a history is a
 * history.
 */
#ifndef SMAPS_TESTS_MEMORY_WORLD_H
#define SMAPS_TESTS_MEMORY_WORLD_H

#include "proc/kernel.h"
#include "proc/rollup.h"
#include <stdbool.h>
#include <stdint.h>

#define MEMORY_SLOTS 16
#define MEMORY_OBJECTS 4
#define MEMORY_PAGES 32768

enum memory_kind { KIND_FREE, KIND_ANON, KIND_FILE, KIND_SHMEM };

/* Sets of slots: a bit for each process. */
struct memory_page {
  uint16_t mappers;
  uint16_t swapped;    /* these have it in swap */
  uint16_t write_once; /* the next write of these faults */
  uint8_t kind;
  bool is_dirty;
  bool is_merged; /* by KSM: a write copies it, even where one has it */
};

struct memory_process {
  bool is_alive;
  uint8_t group; /* set by those who want it; a child has its parent's */
  uint32_t pid, parent_pid;
  uint64_t starttime; /* in the order of birth; never 0 */
  uint64_t program;   /* another after each exec */
  uint32_t minor_faults;
};

/* A file or a piece of shmem is a range of pages. */
struct memory_object {
  uint32_t first, pages;
  uint8_t kind;
};

/* What the files of a process show. */
struct memory_view {
  struct rollup rollup;
  uint64_t resident_pages, shared_pages;
  uint32_t vm_swap_kb;
};

struct memory_world {
  uint64_t page_size;
  bool has_no_ksm_field; /* as before 6.7 */
  uint64_t births;
  uint64_t ksm_run; /* as in struct ksm */
  struct memory_process processes[MEMORY_SLOTS];
  struct memory_object objects[MEMORY_OBJECTS];
  uint32_t n_pages; /* those behind were never used */
  uint32_t n_free;
  uint32_t free_pages[MEMORY_PAGES];
  struct memory_page pages[MEMORY_PAGES];
};

/* object_pages: how large each object is. The first half of them are files, the
 * others shmem. */
void memory_world_init(struct memory_world *w, uint64_t page_size,
                       const uint32_t object_pages[MEMORY_OBJECTS]);

/* Starts a process with a program of its own and no parent in the world. */
void memory_start(struct memory_world *w, unsigned slot);

/* The child has all anonymous memory of its parent and, as the kernel leaves
 * page tables of files to faults, touches so many pages of files and shmem. */
void memory_fork(struct memory_world *w, unsigned parent, unsigned child,
                 uint32_t touched);
void memory_exec(struct memory_world *w, unsigned slot);
void memory_exit(struct memory_world *w, unsigned slot);

/*
 * Ranges are of the pages that the operation can be about, from the part `at`
 * of 65536 of all on, and go round. Where the machine has no page left, nothing
 * grows and nothing is copied.
 */
void memory_grow(struct memory_world *w, unsigned slot, uint32_t pages);
void memory_shrink(struct memory_world *w, unsigned slot, uint32_t pages,
                   uint16_t at);
/* A page that others have too is copied; one that they have left is kept. */
void memory_write(struct memory_world *w, unsigned slot, uint32_t pages,
                  uint16_t at);
/* Maps pages of an object. With fault-around one fault brings up to 16 of them.
 */
void memory_map(struct memory_world *w, unsigned slot, unsigned object,
                uint32_t pages, uint16_t at, bool is_around);
void memory_unmap(struct memory_world *w, unsigned slot, unsigned object,
                  uint32_t pages, uint16_t at);
/* Takes anonymous memory from all processes that have it. */
void memory_swap_out(struct memory_world *w, unsigned slot, uint32_t pages,
                     uint16_t at);
/* Brings memory back to the process that asks for it; a write takes a copy if
 * it must. */
void memory_swap_in(struct memory_world *w, unsigned slot, uint32_t pages,
                    uint16_t at, bool is_write);
/* Brings all memory back to all. */
void memory_swap_off(struct memory_world *w);

/* KSM finds that private pages of the one are equal to some of the other, and
 * both get the same page. */
void memory_merge(struct memory_world *w, unsigned slot, unsigned other,
                  uint32_t pages);
/* KSM stops; or it copies each merged page for each process. */
void memory_stop_merging(struct memory_world *w);
void memory_unmerge(struct memory_world *w);

void memory_read_ksm(const struct memory_world *w, struct ksm *ret);

bool memory_is_swap_used(const struct memory_world *w);

/* Sets what the files of each process show; zero for slots without one. */
void memory_view_all(const struct memory_world *w,
                     struct memory_view ret[MEMORY_SLOTS]);

#endif
