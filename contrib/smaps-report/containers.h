/* SPDX-License-Identifier: MIT */
/* Control groups that are probably containers of a runtime that the plugin does
 * not know. */
#ifndef REPORT_CONTAINERS_H
#define REPORT_CONTAINERS_H

#include "document.h"

/* A warning about those whose processes no rule takes, which the caller frees;
 * NULL: there are none. */
char *containers_unknown(const struct document *d);

#endif
