/* SPDX-License-Identifier: MIT */
/*
 * Hands values to the daemon: all that would differ in collectd 6, which has
 * metrics in place of value lists. contrib/HACKING has what they would be.
 */
#ifndef SMAPS_VALUES_H
#define SMAPS_VALUES_H

#include <daemon/collectd.h>
#include <daemon/plugin.h>

/*
 * One value of a group, or of the plugin, whose group is "". Type and instance
 * are those of the manual; `values` has as many numbers as the type has data
 * sources, in bytes, per cent, seconds or a count, and NAN if one is unknown.
 * The daemon copies what it keeps. An error is the daemon's to log: there is
 * nothing to do about it.
 */
void values_submit(cdtime_t when, const char *group, const char *type,
                   const char *type_instance, const double *values, size_t n);

#endif
