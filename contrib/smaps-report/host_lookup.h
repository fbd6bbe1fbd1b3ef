/* SPDX-License-Identifier: MIT */
/* The name that the daemon finds for its host. Without one it ends at the
 * start, and says so to its log plugins only (init_hostname() of
 * collectd 5.12): with syslog, `collectd -f` prints nothing. */
#ifndef REPORT_HOST_LOOKUP_H
#define REPORT_HOST_LOOKUP_H

#include <daemon/collectd.h>
#include <liboconfig/oconfig.h>

#include <stdbool.h>

/* Begins zeroed; needs no end. */
struct host_lookup {
  bool has_name; /* Hostname: the daemon looks nothing up */
  bool is_off;   /* FQDNLookup false: it takes what uname(2) says */
};

/* Takes the items of the top level in their order: the last one counts. */
void host_lookup_add(struct host_lookup *h, const oconfig_item_t *item);

/*
 * Logs an error if the daemon would look up the name of this host and not find
 * it, and a warning if that takes longer than 5 s. This asks what the system is
 * set up to ask, which can be a server: after 1 s a line on standard error says
 * so.
 */
void host_lookup_check(const struct host_lookup *h, const char *config);

#endif
