/* SPDX-License-Identifier: MIT */
/* Selectors and templates with untrusted values: the matches and the resulting
 * name. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/rule.h"

/* Nested counted repetitions take the C library gigabytes to compile; an author
 * of the configuration can stop the daemon anyway. */
static bool is_heavy(const char *pattern) {
  unsigned counted = 0;

  for (; *pattern; pattern++)
    counted += *pattern == '{' || *pattern == '(' || *pattern == '+' ||
               *pattern == '*';
  return counted > 4;
}

static void look_at_captures(const struct captures *c, const char *value) {
  require(c->text == value);
  for (size_t i = 0; i < CAPTURES; i++) {
    require(c->match[i].rm_so <= c->match[i].rm_eo);
    require(c->match[i].rm_eo <= (regoff_t)strlen(value));
  }
}

static bool has_no_special(const char *pattern) {
  return !strpbrk(pattern, "*?[\\");
}

static int add_selector(struct rule *rule, struct fuzz_bytes *b,
                        const struct attributes *id) {
  const char *option = selector_options[fuzz_byte(b) % 17];
  struct config_error reason = {""};
  struct captures captures;
  char *pattern = fuzz_string(b);
  struct selector s;
  int rc =
      is_heavy(pattern) ? -EINVAL : selector_init(&s, option, pattern, &reason);

  if (rc == 0 && s.attribute < ATTRIBUTES) {
    const char *value = id->value[s.attribute];
    int found = selector_match(&s, id, 7, &captures);

    require(found == 0 || found == 1);
    require(found == 0 || value || !*pattern); /* "": without a value */
    if (found && s.test == SELECT_REGEX)
      look_at_captures(&captures, value);
    if (s.test == SELECT_GLOB && s.attribute != ATTRIBUTE_USER &&
        has_no_special(pattern))
      require(found == (value ? strcmp(value, pattern) == 0 : !*pattern));
  }
  require(rc != -EINVAL || reason.text[0] || is_heavy(pattern));
  if (rc == 0) {
    selector_done(&s);
    rc = rule_add_selector(rule, option, pattern, &reason);
  }
  free(pattern);
  return rc;
}

static void expand(const struct rule *rule, const struct attributes *id) {
  struct captures captures = {.text = NULL};
  struct config_error reason = {""};
  struct group_name name;

  if (rule_check(rule, &reason) != 0) {
    require(reason.text[0]);
    return;
  }
  if (rule_match(rule, id, 7, &captures) <= 0 ||
      !template_expand(rule->name, id, &captures, &name))
    return;
  require(fuzz_is_printable(name.text) && !strchr(name.text, '/'));
  require(name.text[0] && strlen(name.text) < GROUP_NAME_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_bytes b = {data, size};
  struct config_error reason = {""};
  struct attributes id = {.uid = 7};
  char *name = fuzz_string(&b), *values[ATTRIBUTES];
  struct rule rule = {.name = NULL};

  for (int i = 0; i < ATTRIBUTES; i++)
    id.value[i] = values[i] = fuzz_string(&b);
  id.value[fuzz_byte(&b) % ATTRIBUTES] = NULL;
  if (rule_set_name(&rule, name, &reason) == 0) {
    for (int i = 0; i < 4 && b.left > 0; i++)
      add_selector(&rule, &b, &id);
    expand(&rule, &id);
    rule_done(&rule);
  } else {
    require(reason.text[0] && fuzz_is_printable(reason.text));
  }
  for (int i = 0; i < ATTRIBUTES; i++)
    free(values[i]);
  free(name);
  return 0;
}
