/* SPDX-License-Identifier: MIT */
#include "filter.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

int filter_compile(struct filter *ret, const char *option, const char *text,
                   struct config_error *reason) {
  char why[128];
  int rc;

  *ret = (struct filter){.exact = NULL};
  if (!text)
    return 0;
  rc = regcomp(&ret->regex, text, REG_EXTENDED);
  ret->has_regex = rc == 0;
  if (rc == 0)
    return 0;
  regerror(rc, &ret->regex, why, sizeof(why));
  return config_error_set(reason,
                          "%s \"%s\": expected a regular expression: %s",
                          option, QUOTED(text), why);
}

void filter_done(struct filter *f) {
  if (f->has_regex)
    regfree(&f->regex);
  *f = (struct filter){.exact = NULL};
}

static bool is_set(const struct filter *f) { return f->exact || f->has_regex; }

/* regexec(3) finds the first match: if it begins later, none begins at 0. */
bool filter_takes(const struct filter *f, const char *name) {
  regmatch_t match;

  if (!is_set(f))
    return true;
  if (!name)
    return false;
  if (f->exact)
    return strcmp(name, f->exact) == 0;
  return regexec(&f->regex, name, 1, &match, 0) == 0 && match.rm_so == 0;
}

void filters_done(struct filters *f) {
  filter_done(&f->group);
  filter_done(&f->process);
  filter_done(&f->user);
  filter_done(&f->mapping);
}

bool filters_part_groups(const struct filters *f) {
  return is_set(&f->process) || is_set(&f->user);
}

static bool takes_groups(const struct filter *f, const struct process *p) {
  for (size_t i = 0; i < p->n_groups; i++)
    if (filter_takes(f, p->groups[i]))
      return true;
  return !is_set(f);
}

static bool takes_user(const struct filter *f, const struct process *p) {
  char uid[32];

  if (p->uid == MISSING)
    return filter_takes(f, p->user);
  snprintf(uid, sizeof(uid), "%ju", (uintmax_t)p->uid);
  return filter_takes(f, p->user ? p->user : uid) || filter_takes(f, uid);
}

bool filters_take_process(const struct filters *f, const struct process *p) {
  return takes_groups(&f->group, p) && takes_user(&f->user, p) &&
         (filter_takes(&f->process, p->comm) ||
          filter_takes(&f->process, process_command(p)));
}
