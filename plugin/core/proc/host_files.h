/*
 * Small files of the host: /proc/uptime and /proc/loadavg (proc(5);
 * fs/proc/uptime.c, loadavg.c), and what is made of them.
 */
#ifndef SMAPS_HOST_FILES_H
#define SMAPS_HOST_FILES_H

#include <smaps/text.h>

/* Parses the time since boot, with the time that the host was suspended.
 * Returns 0 and fills *ret_ns, or returns -EBADMSG and leaves it unchanged. */
int uptime_parse(const char *text, size_t len, uint64_t *ret_ns);

/*
 * Parses the number of tasks of the host: the threads of all processes, in all
 * pid namespaces, with kernel threads and with main threads that are zombies.
 * Returns 0 and fills *ret_tasks, or returns -EBADMSG and leaves it unchanged.
 */
int loadavg_parse(const char *text, size_t len, uint32_t *ret_tasks);

/*
 * The size of a thread's kernel stack in bytes. It depends on the architecture,
 * the page size and how the kernel was built (KASAN doubles it), and no file
 * has it; but it is a power of two, and meminfo has the sum of all stacks.
 *
 * It is the power of two that is nearest to all_bytes (KernelStack of meminfo)
 * for each of so many tasks with a stack. That sum lags behind by up to 125 KiB
 * for each processor, and moves while tasks come and go, but does not by a
 * third. 0 where both cannot be of the same host: no kernel has stacks below
 * 4 KiB or above 128 KiB.
 */
uint64_t kernel_stack_size(uint64_t all_bytes, uint64_t tasks);

#endif
