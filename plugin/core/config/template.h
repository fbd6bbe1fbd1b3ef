/* SPDX-License-Identifier: MIT */
/*
 * Names of groups from templates with placeholders: "pool-%{1}", "%{unit}".
 * "%%" is a '%'; another '%' without a '{' after it stands for itself.
 *
 * Any user can choose the comm, command line and path of a process. A name made
 * from them must be valid as a directory (rrdtool, csv), a tag (InfluxDB) and a
 * label (Prometheus): a '/' becomes '_' (a leading '/' is dropped, as in
 * collectd's own plugins); a byte that is not printable ASCII becomes \xNN. A
 * name of more than 127 bytes keeps the first 110, then '~' and 16 hexadecimal
 * digits of a hash of the whole, so two long names with the same beginning stay
 * distinct.
 */
#ifndef SMAPS_TEMPLATE_H
#define SMAPS_TEMPLATE_H

#include "config/selector.h"
#include "process/attributes.h"
#include <smaps/config_error.h>

/* DATA_MAX_NAME_LEN of collectd 5, with the NUL. */
#define GROUP_NAME_SIZE 128

/* The instance of the host's own values: no group has this name. */
#define GROUP_NAME_OF_HOST "host"

struct group_name {
  char text[GROUP_NAME_SIZE];
  size_t len;    /* of the whole name, even if text holds less */
  bool is_begun; /* text was added, even if only a dropped '/' */
  uint64_t hash; /* of the whole name */
};

/* 0, or -EINVAL with the expected text in *reason. Other functions take only
 * templates that have passed this, or NULL for an empty one. */
int template_check(const char *text, struct config_error *reason);

/* The placeholders use these attributes, a bit each, and captures up to this
 * number. */
struct template_needs {
  unsigned attributes;
  size_t captures;
};

struct template_needs template_needs(const char *text);

/*
 * Expands the name. False if a placeholder has no value for this process, or if
 * the name is empty or that of the host: the process is then not in that group.
 */
bool template_expand(const char *text, const struct attributes *id,
                     const struct captures *captures, struct group_name *ret);

#endif
