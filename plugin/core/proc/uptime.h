/* /proc/uptime (proc(5); fs/proc/uptime.c): the time since boot, with the time
 * that the host was suspended, and the time that its processors were idle. */
#ifndef SMAPS_UPTIME_H
#define SMAPS_UPTIME_H

#include <smaps/text.h>

/* Returns 0 and fills *ret_ns, or returns -EBADMSG and leaves it unchanged. */
int uptime_parse(const char *text, size_t len, uint64_t *ret_ns);

#endif
