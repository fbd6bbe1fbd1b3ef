#include "proc/kernel_stack.h"

#define LEAST (UINT64_C(4) << 10)
#define MOST (UINT64_C(128) << 10)

uint64_t kernel_stack_size(uint64_t all_bytes, uint64_t tasks) {
  double each = tasks ? (double)all_bytes / (double)tasks : 0;

  for (uint64_t size = LEAST; size <= MOST; size *= 2)
    if (each >= (double)size * 3 / 4 && each < (double)size * 3 / 2)
      return size;
  return 0;
}
