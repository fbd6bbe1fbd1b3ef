#include "config/template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  enum attribute attribute;
} placeholders[] = {
    {"comm", ATTRIBUTE_COMM},
    {"exe", ATTRIBUTE_EXECUTABLE},
    {"user", ATTRIBUTE_USER},
    {"unit", ATTRIBUTE_UNIT},
    {"slice", ATTRIBUTE_SLICE},
    {"container", ATTRIBUTE_CONTAINER},
    {"container_name", ATTRIBUTE_CONTAINER_NAME},
    {"pod", ATTRIBUTE_POD},
    {"namespace", ATTRIBUTE_NAMESPACE},
};
#define PLACEHOLDERS (sizeof(placeholders) / sizeof(*placeholders))

static int add_piece(struct template *t, struct template_piece piece) {
  struct template_piece *pieces =
      reallocarray(t->pieces, t->n + 1, sizeof(*pieces));

  if (!pieces) {
    free(piece.literal);
    return -ENOMEM;
  }
  t->pieces = pieces;
  t->pieces[t->n++] = piece;
  return 0;
}

static int add_literal(struct template *t, const char *text, size_t len) {
  char *literal;

  if (len == 0)
    return 0;
  literal = strndup(text, len);
  if (!literal)
    return -ENOMEM;
  return add_piece(t, (struct template_piece){.literal = literal});
}

static int refuse_placeholder(const char *name, size_t len,
                              struct config_error *reason) {
  const char *names[PLACEHOLDERS];
  char word[40], shown[64];
  const char *nearest;

  for (size_t i = 0; i < PLACEHOLDERS; i++)
    names[i] = placeholders[i].name;
  snprintf(word, sizeof(word), "%.*s", (int)len, name);
  nearest = config_error_nearest(word, names, PLACEHOLDERS);
  escape_text(name, len, shown, sizeof(shown));
  return config_error_set(reason,
                          "expected %%{comm}, %%{exe}, %%{user}, %%{unit}, "
                          "%%{slice}, %%{container}, %%{container_name}, "
                          "%%{pod}, %%{namespace} or %%{1} to %%{9}, not "
                          "%%{%s}%s%s%s",
                          shown, nearest ? "; did you mean %{" : "",
                          nearest ? nearest : "", nearest ? "}?" : "");
}

static int add_placeholder(struct template *t, const char *name, size_t len,
                           struct config_error *reason) {
  if (len == 1 && name[0] >= '1' && name[0] <= '9')
    return add_piece(t,
                     (struct template_piece){.capture = (size_t)(*name - '0')});
  for (size_t i = 0; i < PLACEHOLDERS; i++)
    if (strlen(placeholders[i].name) == len &&
        strncmp(placeholders[i].name, name, len) == 0)
      return add_piece(
          t, (struct template_piece){.attribute = placeholders[i].attribute});
  return refuse_placeholder(name, len, reason);
}

static int parse(struct template *t, const char *text,
                 struct config_error *reason) {
  const char *start = text;

  if (!*text)
    return config_error_set(reason, "expected a name that is not empty");
  for (const char *p = text; *p; p++) {
    const char *close;
    int rc;

    if (*p != '%' || (p[1] != '{' && p[1] != '%'))
      continue;
    /* "%%": the first '%' is added with the text before it. */
    rc = add_literal(t, start, (size_t)(p - start) + (p[1] == '%'));
    if (rc < 0)
      return rc;
    p++;
    start = p + 1;
    if (*p == '%')
      continue;
    close = strchr(p, '}');
    if (!close)
      return config_error_set(reason, "expected a '}' after %%{");
    rc = add_placeholder(t, start, (size_t)(close - start), reason);
    if (rc < 0)
      return rc;
    p = close;
    start = close + 1;
  }
  return add_literal(t, start, strlen(start));
}

int template_init(struct template *t, const char *text,
                  struct config_error *reason) {
  struct template made = {0};
  int rc = parse(&made, text, reason);

  if (rc < 0) {
    template_done(&made);
    return rc;
  }
  *t = made;
  return 0;
}

void template_done(struct template *t) {
  for (size_t i = 0; i < t->n; i++)
    free(t->pieces[i].literal);
  free(t->pieces);
  *t = (struct template){0};
}

bool template_is_fixed(const struct template *t) {
  return template_attributes(t) == 0 && template_captures(t) == 0;
}

unsigned template_attributes(const struct template *t) {
  unsigned attributes = 0;

  for (size_t i = 0; i < t->n; i++)
    if (!t->pieces[i].literal && !t->pieces[i].capture)
      attributes |= 1U << t->pieces[i].attribute;
  return attributes;
}

size_t template_captures(const struct template *t) {
  size_t most = 0;

  for (size_t i = 0; i < t->n; i++)
    if (t->pieces[i].capture > most)
      most = t->pieces[i].capture;
  return most;
}

static bool add_capture(const struct captures *c, size_t number,
                        struct group_name *n) {
  const regmatch_t *m;

  if (!c || !c->text)
    return false;
  m = &c->match[number];
  if (m->rm_so < 0 || m->rm_eo == m->rm_so)
    return false;
  group_name_add(n, c->text + m->rm_so, (size_t)(m->rm_eo - m->rm_so));
  return true;
}

static bool add_attribute(const struct attributes *id, enum attribute attribute,
                          struct group_name *n) {
  const char *value = id->value[attribute];

  if (!value || !*value)
    return false;
  group_name_add(n, value, strlen(value));
  return true;
}

bool template_expand(const struct template *t, const struct attributes *id,
                     const struct captures *captures, struct group_name *ret) {
  struct group_name name = {.len = 0};

  for (size_t i = 0; i < t->n; i++) {
    const struct template_piece *piece = &t->pieces[i];

    if (piece->literal)
      group_name_add(&name, piece->literal, strlen(piece->literal));
    else if (!(piece->capture ? add_capture(captures, piece->capture, &name)
                              : add_attribute(id, piece->attribute, &name)))
      return false;
  }
  if (!group_name_finish(&name))
    return false;
  *ret = name;
  return true;
}
