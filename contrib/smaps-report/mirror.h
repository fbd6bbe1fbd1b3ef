/* A captured /proc: the directory that contrib/capture-proc makes. */
#ifndef REPORT_MIRROR_H
#define REPORT_MIRROR_H

#include <smaps/config_error.h>

#include <stdbool.h>

struct mirror;

/* Keeps the path. Returns 0, or a negative errno with the reason. Free *ret
 * with mirror_close(), which accepts NULL. */
int mirror_open(const char *path, struct mirror **ret,
                struct config_error *reason);
void mirror_close(struct mirror *m);

/* The directory that stands for /proc. */
const char *mirror_root(const struct mirror *m);
/* The name of the capture, which stands for the host. */
const char *mirror_name(const struct mirror *m);
/* False if it is a proc file system after all, which shows what is now. Else
 * *ret_time is when it was captured, in seconds since the Epoch. */
bool mirror_is_captured(const struct mirror *m, double *ret_time);

#endif
