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

struct template {
  char *text; /* NULL: none */
};

/* 0, -EINVAL with the expected text in *reason, or -ENOMEM. */
int template_init(struct template *t, const char *text,
                  struct config_error *reason);
void template_done(struct template *t);

/* The placeholders use these attributes, a bit each, and captures up to this
 * number. */
struct template_needs {
  unsigned attributes;
  size_t captures;
};

struct template_needs template_needs(const struct template *t);

/* True if the template has no placeholder. */
bool template_is_fixed(const struct template *t);

/*
 * Expands the name. False if a placeholder has no value for this process, or if
 * the name is empty or that of the host: the process is then not in that group.
 */
bool template_expand(const struct template *t, const struct attributes *id,
                     const struct captures *captures, struct group_name *ret);

#endif
