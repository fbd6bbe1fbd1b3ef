/* SPDX-License-Identifier: MIT */
#include "config/template.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cgroup/cgroup.h"

#define KEPT_OF_LONG 110

/* NULL for attributes that no name can have. */
#define PLACEHOLDER(name, key, selector) #key,
#define NO_PLACEHOLDER(name, key, selector) NULL,
static const char *const placeholders[ATTRIBUTES] = {
    ATTRIBUTE_TABLE(PLACEHOLDER, NO_PLACEHOLDER)};

/* ", %{comm}, %{exe}", and so on. */
#define LISTED(name, key, selector) ", %{" #key "}"
#define NOT_LISTED(name, key, selector)
static const char placeholder_list[] = ATTRIBUTE_TABLE(LISTED, NOT_LISTED);

/* A text, a capture, or an attribute. */
struct piece {
  struct span text;         /* or what stands between %{ and } */
  size_t capture;           /* 1 … 9, or 0 */
  enum attribute attribute; /* or ATTRIBUTES */
  bool is_unit_template;
};

static int find_placeholder(struct piece *p) {
  char first = *p->text.text;

  if (p->text.len == 1 && first >= '1' && first <= '9') {
    p->capture = (size_t)(first - '0');
    return 1;
  }
  p->is_unit_template = span_is(p->text, "unit_template");
  if (p->is_unit_template)
    p->text.len = strlen("unit");
  for (unsigned i = 0; i < ATTRIBUTES; i++)
    if (placeholders[i] && span_is(p->text, placeholders[i])) {
      p->attribute = i;
      return 1;
    }
  return -EINVAL;
}

/* Gets the next piece of a template, which may be NULL. 1, 0 at the end, or
 * -EINVAL: no such placeholder, or one without an end (the text is NULL). */
static int next_piece(const char **at, struct piece *ret) {
  const char *p = *at, *close;

  if (!p || !*p)
    return 0;
  *ret = (struct piece){.attribute = ATTRIBUTES};
  if (p[0] == '%' && p[1] == '{') {
    close = strchr(p, '}');
    if (!close)
      return -EINVAL;
    ret->text = (struct span){p + 2, (size_t)(close - p) - 2};
    *at = close + 1;
    return find_placeholder(ret);
  }
  ret->text = (struct span){p, 1 + strcspn(p + 1, "%")};
  *at = p + ret->text.len;
  if (p[0] == '%' && p[1] == '%') /* one that stands for itself */
    ++*at;
  return 1;
}

static int refuse_placeholder(const struct piece *p,
                              struct config_error *reason) {
  char shown[64];

  if (!p->text.text)
    return config_error_set(reason, "expected a '}' after %%{");
  return config_error_set(
      reason, "expected %s, %%{unit_template} or %%{1} to %%{9}, not %%{%s}",
      placeholder_list + strlen(", "),
      escape_text(p->text.text, p->text.len, shown, sizeof(shown)));
}

int template_check(const char *text, struct config_error *reason) {
  struct piece piece;
  int rc;

  if (!*text)
    return config_error_set(reason, "expected a name that is not empty");
  while ((rc = next_piece(&text, &piece)) > 0)
    ;
  return rc < 0 ? refuse_placeholder(&piece, reason) : 0;
}

struct template_needs template_needs(const char *text) {
  struct template_needs needs = {.captures = 0};
  struct piece piece;

  while (next_piece(&text, &piece) > 0) {
    if (piece.attribute < ATTRIBUTES)
      needs.attributes |= 1U << piece.attribute;
    if (piece.capture > needs.captures)
      needs.captures = piece.capture;
  }
  return needs;
}

/* --- names ---------------------------------------------------------------- */

/* FNV-1a, 64 bits. It needs no secret: names that collide on purpose only share
 * a group of the attacker's own processes. */
static void add_byte(struct group_name *n, char c) {
  n->hash = (n->hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
  if (n->len < GROUP_NAME_SIZE - 1)
    n->text[n->len] = c;
  n->len++;
}

static void add_hex(struct group_name *n, unsigned char c) {
  static const char digit[] = "0123456789abcdef";

  add_byte(n, '\\');
  add_byte(n, 'x');
  add_byte(n, digit[c >> 4]);
  add_byte(n, digit[c & 15]);
}

static void add_text(struct group_name *n, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];

    if (c == '/' && !n->is_begun)
      ;
    else if (c == '/')
      add_byte(n, '_');
    else if (c >= 0x20 && c < 0x7f)
      add_byte(n, (char)c);
    else
      add_hex(n, c);
    n->is_begun = true;
  }
}

/* False if the name is empty or that of the host. */
static bool finish(struct group_name *n) {
  if (n->len == 0)
    return false;
  if (n->len < GROUP_NAME_SIZE)
    n->text[n->len] = '\0';
  else
    snprintf(n->text + KEPT_OF_LONG, GROUP_NAME_SIZE - KEPT_OF_LONG, "~%016llx",
             (unsigned long long)n->hash);
  return strcmp(n->text, GROUP_NAME_OF_HOST) != 0;
}

/* --- expansion -------------------------------------------------------------
 */

static bool add_capture(const struct captures *c, size_t number,
                        struct group_name *n) {
  const regmatch_t *m;

  if (!c || !c->text)
    return false;
  m = &c->match[number];
  if (m->rm_so < 0 || m->rm_eo == m->rm_so)
    return false;
  add_text(n, c->text + m->rm_so, (size_t)(m->rm_eo - m->rm_so));
  return true;
}

static bool add_attribute(const struct attributes *id, const struct piece *p,
                          struct group_name *n) {
  const char *value = id->value[p->attribute];
  size_t len = value ? strlen(value) : 0, kept = len;

  if (len > 0 && p->is_unit_template)
    kept = cgroup_unit_kept(value);
  if (kept == 0)
    return false;
  add_text(n, value, kept);
  if (kept < len)
    add_text(n, strrchr(value, '.'), strlen(strrchr(value, '.')));
  return true;
}

static bool add_piece(const struct piece *p, const struct attributes *id,
                      const struct captures *captures, struct group_name *n) {
  if (p->capture > 0)
    return add_capture(captures, p->capture, n);
  if (p->attribute < ATTRIBUTES)
    return add_attribute(id, p, n);
  add_text(n, p->text.text, p->text.len);
  return true;
}

bool template_expand(const char *text, const struct attributes *id,
                     const struct captures *captures, struct group_name *ret) {
  struct group_name name = {.hash = UINT64_C(0xcbf29ce484222325)};
  struct piece piece;

  while (next_piece(&text, &piece) > 0)
    if (!add_piece(&piece, id, captures, &name))
      return false;
  if (!finish(&name))
    return false;
  *ret = name;
  return true;
}
