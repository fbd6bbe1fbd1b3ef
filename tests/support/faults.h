/* SPDX-License-Identifier: MIT */
/*
 * Makes one chosen call that the plugin makes into the system fail.
 *
 * Works by the linker's --wrap: a program that is linked with faults.o is one
 * of FAULTY in tests/tests.mk. Calls of the plugin's first thread are counted
 * with those of who starts it, and those of further ones for themselves.
 * Besides, the wrappers stand for what must not be the machine's own: its
 * clock, /proc, the state of KSM, the kernel's release, users, and kcmp(2).
 */
#ifndef SMAPS_TESTS_FAULTS_H
#define SMAPS_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tree that stands for "/proc" and "/sys/kernel/mm/ksm", by any path. */
void faults_set_root(const char *root);

/* Puts CLOCK_MONOTONIC forward. A microsecond passes by each question. */
void faults_pass(uint64_t ns);

/*
 * Counts calls from here on. The `at`-th (from 1; 0 for none) fails, in the
 * `way`-th of the ways that it can (from 0).
 */
void faults_start(unsigned at, unsigned way);
void faults_stop(void);

/* Chooses a lane, before the start: 0 for the first thread, 1 for further ones.
 */
void faults_watch(unsigned which);

/* Lets calls of lane 0 pass without counting them, or no longer. */
void faults_skip(bool skips);

/* Waits until the thread that was started last, of the further ones, has
 * nothing to do: it waits for a condition, and nobody has signalled that since.
 */
void faults_await_idle(void);

/* How many calls there were since the start. */
unsigned faults_calls(void);

/* The call that was made to fail since the start, or NULL: "read 10/statm:
 * EIO". Good until the next start. */
const char *faults_made(void);
/* Returns the errno of that call; 0 if nothing failed or a read was cut short.
 */
int faults_error(void);

/* How many calls of that name there were since the start. */
unsigned faults_calls_of(const char *name);

/* Counts a block of memory that the C library takes, and that free() gives
 * back. */
void faults_take_block(void);

/* Prints what went wrong after the last fault, up to forty times. */
__attribute__((format(printf, 1, 2))) void faults_complain(const char *format,
                                                           ...);

/*
 * Has each call behind `from` up to `to` fail in each way that it can, as of
 * the run before: try() is a run in which it does. Of calls that are alike,
 * made on objects of one name, those behind the first fail in one of four of
 * their ways each, in turn; with FAULTS_ALIKE=1 in the environment in all. With
 * FAULTS_STEP=n only each n-th call fails. is_swept() chooses calls; NULL for
 * all. Fails the test if there was a complaint, or a run has kept memory or a
 * file. Returns how many calls were chosen.
 */
unsigned faults_sweep(unsigned from, unsigned to, bool (*is_swept)(unsigned at),
                      void (*try)(unsigned at, unsigned way));

#endif
