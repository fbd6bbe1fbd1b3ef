/*
 * Makes one chosen call that the plugin makes into the system fail.
 *
 * Works by the linker's --wrap: a program that is linked with faults.o is to be
 * linked with FAULTS_LDFLAGS too (see the Makefile). Calls of the plugin's
 * first thread are counted with those of who starts it, and those of further
 * ones for themselves. Besides, the wrappers stand for what must not be the
 * machine's own: its clock, /proc, the state of KSM, the kernel's release,
 * users, and kcmp(2).
 */
#ifndef SMAPS_TESTS_FAULTS_H
#define SMAPS_TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is found under "/proc" and "/sys/kernel/mm/ksm", by any path. */
void faults_set_root(const char *root);

/* What CLOCK_MONOTONIC is put forward by. A microsecond passes by each look. */
void faults_pass(uint64_t ns);

/*
 * Counts calls from here on. The `at`-th (from 1; 0 for none) fails, in the
 * `way`-th of the ways that it can (from 0).
 */
void faults_start(unsigned at, unsigned way);
void faults_stop(void);

/* Which of the two to look at, before the start: 0, or 1 for further threads.
 */
void faults_watch(unsigned which);

/* Of the first, calls are let pass and not counted, or not any more. */
void faults_skip(bool skips);

/* How many calls there were since the start, and in how many ways the n-th of
 * them can fail. */
unsigned faults_calls(void);
unsigned faults_ways(unsigned n);

/* What has been made to fail since the start, or NULL: "read 10/statm: EIO".
 * Good until the next start. */
const char *faults_made(void);
/* Likewise, as the errno; 0 where nothing failed or a read was cut short. */
int faults_error(void);

/* How many calls of that name there were since the start. */
unsigned faults_calls_of(const char *name);

/* Blocks of memory that were taken and not given back, ever. */
long faults_blocks(void);

#endif
