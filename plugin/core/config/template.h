/*
 * Group names with placeholders: "pool-%{1}", "%{unit}". "%%" is a '%'; another
 * '%' without a '{' after it stands for itself.
 */
#ifndef SMAPS_TEMPLATE_H
#define SMAPS_TEMPLATE_H

#include "config/selector.h"
#include "process/attributes.h"
#include <smaps/config_error.h>
#include <smaps/group_name.h>

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

/* True if the template has no placeholder. */
bool template_is_fixed(const char *text);

/*
 * Expands the name. False if a placeholder has no value for this process, or if
 * the name is empty or that of the host: the process is then not in that group.
 */
bool template_expand(const char *text, const struct attributes *id,
                     const struct captures *captures, struct group_name *ret);

#endif
