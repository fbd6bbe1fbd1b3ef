/* SPDX-License-Identifier: MIT */
/*
 * Filters of tables: regular expressions (POSIX, extended) that have to match
 * the beginning of a name, as in smem.
 */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include "document.h"

#include <regex.h>
#include <smaps/config_error.h>

/* A zeroed filter takes all. */
struct filter {
  const char *exact; /* or NULL: the regular expression, if there is one */
  bool has_regex;
  regex_t regex;
};

struct filters {
  struct filter group;
  struct filter process; /* comm or command line */
  struct filter user;    /* its name, or the uid */
  struct filter mapping;
};

/* Returns 0, or -EINVAL with the option, its value and the mistake. The text
 * NULL makes a filter that takes all. */
int filter_compile(struct filter *ret, const char *option, const char *text,
                   struct config_error *reason);
void filter_done(struct filter *f);

/* A name of NULL stands for "no name", which only an unset filter takes. */
bool filter_takes(const struct filter *f, const char *name);

void filters_done(struct filters *f);

/* True if some processes of a group may be taken and others not. */
bool filters_part_groups(const struct filters *f);
bool filters_take_process(const struct filters *f, const struct process *p);

#endif
