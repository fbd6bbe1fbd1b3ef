/* /proc/loadavg (proc(5); fs/proc/loadavg.c). */
#ifndef SMAPS_LOADAVG_H
#define SMAPS_LOADAVG_H

#include <smaps/text.h>

/*
 * Parses the number of tasks of the host: the threads of all processes, in all
 * pid namespaces, with kernel threads and with main threads that are zombies.
 * Returns 0 and fills *ret_tasks, or returns -EBADMSG and leaves it unchanged.
 */
int loadavg_parse(const char *text, size_t len, uint32_t *ret_tasks);

#endif
