/* SPDX-License-Identifier: MIT */
#include "config/rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rule_set_name(struct rule *r, const char *name,
                  struct config_error *reason) {
  static const struct attributes no_attributes;
  struct template_needs needs;
  int rc = template_check(name, reason);

  if (rc < 0)
    return rc;
  needs = template_needs(name);
  if (!template_expand(name, &no_attributes, NULL, &r->fixed_name) &&
      needs.attributes == 0 && needs.captures == 0)
    return config_error_set(
        reason, "expected a name other than \"/\" and \"" GROUP_NAME_OF_HOST
                "\" (reserved)");
  r->name = strdup(name);
  return r->name ? 0 : -ENOMEM;
}

void rule_done(struct rule *r) {
  free(r->text);
  free(r->name);
  for (size_t i = 0; i < r->n_selectors; i++)
    selector_done(&r->selectors[i]);
  free(r->selectors);
  *r = (struct rule){0};
}

int rule_add_selector(struct rule *r, const char *option, const char *pattern,
                      struct config_error *reason) {
  struct selector *selectors =
      reallocarray(r->selectors, r->n_selectors + 1, sizeof(*selectors));
  size_t place = r->n_selectors;
  struct selector s;
  int rc;

  if (!selectors)
    return -ENOMEM;
  r->selectors = selectors;
  rc = selector_init(&s, option, pattern, reason);
  if (rc < 0)
    return rc;
  for (size_t i = 0; i < r->n_selectors; i++)
    if (selectors[i].attribute == s.attribute)
      place = i + 1;
  memmove(&selectors[place + 1], &selectors[place],
          (r->n_selectors - place) * sizeof(*selectors));
  selectors[place] = s;
  r->n_selectors++;
  return 0;
}

/* The first selector after i with another attribute. */
static size_t next_attribute(const struct rule *r, size_t i) {
  enum attribute attribute = r->selectors[i].attribute;

  while (i < r->n_selectors && r->selectors[i].attribute == attribute)
    i++;
  return i;
}

/* The first selector of the attribute whose captures are those of the name;
 * n_selectors if none has any. */
static size_t find_captures(const struct rule *r) {
  size_t first = 0;

  for (size_t i = 0; i < r->n_selectors; i++) {
    if (r->selectors[i].attribute != r->selectors[first].attribute)
      first = i;
    if (selector_captures(&r->selectors[i]) > 0)
      return first;
  }
  return r->n_selectors;
}

static int check_captures(const struct rule *r, size_t wanted,
                          struct config_error *reason) {
  const char *plural = wanted == 1 ? "" : "s";
  size_t i = find_captures(r), end;
  char text[200];

  if (i == r->n_selectors)
    return config_error_set(
        reason,
        "expected a regular expression with %zu pair%s of parentheses in the "
        "block, for %%{%zu}: a selector with Match, such as CommMatch "
        "\"^(web.*)\"",
        wanted, plural, wanted);
  for (end = next_attribute(r, i); i < end; i++) {
    const struct selector *s = &r->selectors[i];

    if (selector_captures(s) < wanted)
      return config_error_set(
          reason, "expected %zu pair%s of parentheses in \"%s\", for %%{%zu}",
          wanted, plural, quote_text(s->pattern, text, sizeof(text)), wanted);
  }
  return 0;
}

int rule_check(const struct rule *r, struct config_error *reason) {
  size_t wanted;

  if (r->n_selectors == 0)
    return config_error_set(reason,
                            "expected at least one selector, such as Comm or "
                            "Unit");
  wanted = template_needs(r->name).captures;
  return wanted > 0 ? check_captures(r, wanted, reason) : 0;
}

static int match_attribute(const struct rule *r, size_t i, size_t end,
                           const struct attributes *id, uint32_t pid,
                           struct captures *captures) {
  int rc = 0;

  for (; i < end && rc == 0; i++)
    rc = selector_match(&r->selectors[i], id, pid, captures);
  return rc;
}

int rule_match(const struct rule *r, const struct attributes *id, uint32_t pid,
               struct captures *ret_captures) {
  size_t source = find_captures(r), end;
  int rc = 1;

  ret_captures->text = NULL;
  for (size_t i = 0; i < r->n_selectors && rc > 0; i = end) {
    end = next_attribute(r, i);
    rc = match_attribute(r, i, end, id, pid, i == source ? ret_captures : NULL);
  }
  return rc;
}

bool rule_could_match(const struct rule *r, const struct glimpse *g) {
  struct glimpse glimpse = *g;
  size_t end;

  for (size_t i = 0; i < r->n_selectors; i++)
    glimpse.may_be_renamed |= r->selectors[i].attribute == ATTRIBUTE_COMM;
  for (size_t i = 0; i < r->n_selectors; i = end) {
    end = next_attribute(r, i);
    while (i < end && !selector_could_match(&r->selectors[i], &glimpse))
      i++;
    if (i == end)
      return false;
  }
  return true;
}

bool rule_is_blind(const struct rule *r) {
  for (size_t i = 0; i < r->n_selectors; i++)
    if (r->selectors[i].test == SELECT_PID_FILE &&
        !r->selectors[i].is_pid_known)
      return true;
  return false;
}

static unsigned selector_attributes(const struct rule *r,
                                    const struct selector *s) {
  if (s->attribute < ATTRIBUTES)
    return 1U << s->attribute;
  return r->takes_children ? 1U << ATTRIBUTE_CGROUP : 0;
}

unsigned rule_attributes(const struct rule *r) {
  unsigned attributes = template_needs(r->name).attributes;

  for (size_t i = 0; i < r->n_selectors; i++)
    attributes |= selector_attributes(r, &r->selectors[i]);
  return attributes;
}
