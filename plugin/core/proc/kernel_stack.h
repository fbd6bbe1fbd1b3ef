/*
 * The size of a thread's kernel stack. It depends on the architecture, the page
 * size and how the kernel was built (KASAN doubles it), and no file has it; but
 * it is a power of two, and meminfo has the sum of all stacks.
 */
#ifndef SMAPS_KERNEL_STACK_H
#define SMAPS_KERNEL_STACK_H

#include <stdint.h>

/*
 * The size in bytes: the power of two that is nearest to all_bytes (KernelStack
 * of meminfo) for each of so many tasks with a stack. That sum lags behind by
 * up to 125 KiB for each processor, and moves while tasks come and go, but does
 * not by a third. 0 where both cannot be of the same host: no kernel has stacks
 * below 4 KiB or above 128 KiB.
 */
uint64_t kernel_stack_size(uint64_t all_bytes, uint64_t tasks);

#endif
