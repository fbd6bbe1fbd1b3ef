/* SPDX-License-Identifier: MIT */
#include "values.h"

#include <math.h>

#define VALUES_MAX 2

static value_list_t name_values(const char *group, const char *type,
                                const char *type_instance) {
  value_list_t vl = VALUE_LIST_INIT;

  snprintf(vl.host, sizeof(vl.host), "%s", hostname_g);
  snprintf(vl.plugin, sizeof(vl.plugin), "smaps");
  snprintf(vl.plugin_instance, sizeof(vl.plugin_instance), "%s", group);
  snprintf(vl.type, sizeof(vl.type), "%s", type);
  snprintf(vl.type_instance, sizeof(vl.type_instance), "%s", type_instance);
  return vl;
}

void values_submit(cdtime_t when, const char *group, const char *type,
                   const char *type_instance, const double *values, size_t n) {
  value_list_t vl = name_values(group, type, type_instance);
  bool is_derive = strcmp(type, "total_events") == 0;
  value_t list[VALUES_MAX];

  assert(n <= VALUES_MAX);
  /* A DERIVE has no NaN: while it is unknown, it is missing. */
  if (is_derive && isnan(values[0]))
    return;
  for (size_t i = 0; i < n; i++)
    if (is_derive)
      list[i].derive = (derive_t)values[i];
    else
      list[i].gauge = values[i];
  vl.values = list;
  vl.values_len = n;
  vl.time = when;
  plugin_dispatch_values(&vl);
}
