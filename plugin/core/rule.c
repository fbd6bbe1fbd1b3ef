#include <smaps/rule.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct identity nobody;

int rule_init_group(struct rule *r, const char *name, struct reason *reason) {
  struct name fixed;
  int status;

  *r = (struct rule){0};
  status = template_init(&r->name, name, reason);
  if (status < 0 || !template_is_fixed(&r->name) ||
      template_expand(&r->name, &nobody, NULL, &fixed))
    return status;
  rule_done(r);
  return reason_set(reason, "expected a name of more than a '/'");
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

/* The first selector behind those of the same attribute as selector i. */
static size_t next_attribute(const struct rule *r, size_t i) {
  enum attribute attribute = r->selectors[i].attribute;

  while (i < r->n_selectors && r->selectors[i].attribute == attribute)
    i++;
  return i;
}

/* Whether the names's captures come from selectors i … end-1. */
static bool makes_captures(const struct rule *r, size_t i, size_t end) {
  for (; i < end; i++)
    if (selector_captures(&r->selectors[i]) > 0)
      return true;
  return false;
}

static int refuse_captures(const struct selector *s, size_t wanted,
                           struct reason *reason) {
  char pattern[200];

  return reason_set(
      reason, "expected %zu captures in \"%s\", for %%{%zu}; it has %zu",
      wanted,
      name_escape(s->pattern, strlen(s->pattern), pattern, sizeof(pattern)),
      wanted, selector_captures(s));
}

static int check_captures(const struct rule *r, struct reason *reason) {
  size_t wanted = template_captures(&r->name);
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
  return reason_set(reason,
                    "expected a regular expression with %zu captures in the "
                    "block, for %%{%zu}",
                    wanted, wanted);
}

int rule_check(const struct rule *r, struct reason *reason) {
  if (r->n_selectors == 0)
    return reason_set(reason, "expected one selector at least, such as Comm or "
                              "Unit");
  if (template_captures(&r->name) == 0)
    return 0;
  return check_captures(r, reason);
}

static int match_attribute(const struct rule *r, size_t i, size_t end,
                           const struct identity *id, uint32_t pid,
                           struct captures *captures) {
  int status = 0;

  for (; i < end && status == 0; i++)
    status = selector_match(&r->selectors[i], id, pid, captures);
  return status;
}

int rule_match(const struct rule *r, const struct identity *id, uint32_t pid,
               struct captures *ret_captures) {
  bool has_captures = false;
  size_t end;

  ret_captures->text = NULL;
  for (size_t i = 0; i < r->n_selectors; i = end) {
    bool is_source;
    int status;

    end = next_attribute(r, i);
    is_source = !has_captures && makes_captures(r, i, end);
    status =
        match_attribute(r, i, end, id, pid, is_source ? ret_captures : NULL);
    if (status <= 0)
      return status;
    has_captures |= is_source;
  }
  return 1;
}

bool rule_is_blind(const struct rule *r) {
  for (size_t i = 0; i < r->n_selectors; i++)
    if (r->selectors[i].test == SELECT_PID_FILE &&
        !r->selectors[i].is_pid_known)
      return true;
  return false;
}

unsigned rule_attributes(const struct rule *r) {
  unsigned attributes = template_attributes(&r->name);

  for (size_t i = 0; i < r->n_selectors; i++)
    if (r->selectors[i].attribute < ATTRIBUTES)
      attributes |= 1U << r->selectors[i].attribute;
  return attributes;
}

bool rule_has_same_name(const struct rule *a, const struct rule *b) {
  struct name x, y;

  return !a->is_ignore && !b->is_ignore && template_is_fixed(&a->name) &&
         template_is_fixed(&b->name) &&
         template_expand(&a->name, &nobody, NULL, &x) &&
         template_expand(&b->name, &nobody, NULL, &y) &&
         strcmp(x.text, y.text) == 0;
}
