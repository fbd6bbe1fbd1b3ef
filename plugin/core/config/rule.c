#include "config/rule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct attributes no_attributes;

int rule_init_group(struct rule *r, const char *name,
                    struct config_error *reason) {
  struct group_name fixed;
  int rc;

  *r = (struct rule){0};
  rc = template_init(&r->name, name, reason);
  if (rc < 0 || !template_is_fixed(&r->name) ||
      template_expand(&r->name, &no_attributes, NULL, &fixed))
    return rc;
  rule_done(r);
  return config_error_set(
      reason, "expected a name other than \"/\" and \"" GROUP_NAME_OF_HOST
              "\" (reserved)");
}

void rule_init_ignore(struct rule *r) { *r = (struct rule){.is_ignore = true}; }

void rule_done(struct rule *r) {
  free(r->text);
  template_done(&r->name);
  for (size_t i = 0; i < r->n_selectors; i++)
    selector_done(&r->selectors[i]);
  free(r->selectors);
  *r = (struct rule){0};
}

int rule_set_text(struct rule *r, const char *text) {
  char *copy = strdup(text);

  if (!copy)
    return -ENOMEM;
  free(r->text);
  r->text = copy;
  return 0;
}

int rule_add_selector(struct rule *r, struct selector *s) {
  struct selector *selectors =
      reallocarray(r->selectors, r->n_selectors + 1, sizeof(*selectors));
  size_t place = r->n_selectors;

  if (!selectors) {
    selector_done(s);
    return -ENOMEM;
  }
  r->selectors = selectors;
  for (size_t i = 0; i < r->n_selectors; i++)
    if (selectors[i].attribute == s->attribute)
      place = i + 1;
  memmove(&selectors[place + 1], &selectors[place],
          (r->n_selectors - place) * sizeof(*selectors));
  selectors[place] = *s;
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

/* True if one of the selectors i … end-1 has captures. */
static bool makes_captures(const struct rule *r, size_t i, size_t end) {
  for (; i < end; i++)
    if (selector_captures(&r->selectors[i]) > 0)
      return true;
  return false;
}

static int refuse_captures(const struct selector *s, size_t wanted,
                           struct config_error *reason) {
  char pattern[200];

  return config_error_set(
      reason,
      "expected %zu pair%s of parentheses in \"%s\", for %%{%zu}; it has %zu",
      wanted, wanted == 1 ? "" : "s",
      escape_text(s->pattern, strlen(s->pattern), pattern, sizeof(pattern)),
      wanted, selector_captures(s));
}

static int check_captures(const struct rule *r, struct config_error *reason) {
  size_t wanted = template_needs(&r->name).captures;
  size_t end;

  for (size_t i = 0; i < r->n_selectors; i = end) {
    end = next_attribute(r, i);
    if (!makes_captures(r, i, end))
      continue;
    for (; i < end; i++)
      if (selector_captures(&r->selectors[i]) < wanted)
        return refuse_captures(&r->selectors[i], wanted, reason);
    return 0;
  }
  return config_error_set(
      reason,
      "expected a regular expression with %zu pair%s of parentheses in the "
      "block, for %%{%zu}: a selector with Match, such as CommMatch "
      "\"^(web.*)\"",
      wanted, wanted == 1 ? "" : "s", wanted);
}

int rule_check(const struct rule *r, struct config_error *reason) {
  if (r->n_selectors == 0)
    return config_error_set(reason,
                            "expected at least one selector, such as Comm or "
                            "Unit");
  if (template_needs(&r->name).captures == 0)
    return 0;
  return check_captures(r, reason);
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
  bool has_captures = false;
  size_t end;

  ret_captures->text = NULL;
  for (size_t i = 0; i < r->n_selectors; i = end) {
    bool is_source;
    int rc;

    end = next_attribute(r, i);
    is_source = !has_captures && makes_captures(r, i, end);
    rc = match_attribute(r, i, end, id, pid, is_source ? ret_captures : NULL);
    if (rc <= 0)
      return rc;
    has_captures |= is_source;
  }
  return 1;
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
  unsigned attributes = template_needs(&r->name).attributes;

  for (size_t i = 0; i < r->n_selectors; i++)
    attributes |= selector_attributes(r, &r->selectors[i]);
  return attributes;
}

bool rule_has_same_name(const struct rule *a, const struct rule *b) {
  struct group_name x, y;

  return !a->is_ignore && !b->is_ignore && template_is_fixed(&a->name) &&
         template_is_fixed(&b->name) &&
         template_expand(&a->name, &no_attributes, NULL, &x) &&
         template_expand(&b->name, &no_attributes, NULL, &y) &&
         strcmp(x.text, y.text) == 0;
}
