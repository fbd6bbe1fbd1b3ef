/* SPDX-License-Identifier: MIT */
#include "parsed.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

/* yajl's parser wants a NUL and would stop at one, so there may be no other. */
parsed parsed_text(const char *text, size_t len) {
  char *copy = malloc(len + 1), error[256] = "";
  parsed p;

  assert_non_null(copy);
  memcpy(copy, text, len);
  copy[len] = '\0';
  assert_int_equal(strlen(copy), len);
  p = yajl_tree_parse(copy, error, sizeof(error));
  if (!p)
    fail_msg("no JSON: %s\n%s", error, copy);
  free(copy);
  return p;
}

parsed parsed_file(const char *path) {
  FILE *file = fopen(path, "r");
  char *text = NULL;
  size_t len = 0;
  parsed p;

  if (!file)
    fail_msg("%s cannot be read", path);
  if (getdelim(&text, &len, '\0', file) < 0)
    fail_msg("%s is empty", path);
  fclose(file);
  p = parsed_text(text, strlen(text));
  free(text);
  return p;
}

void parsed_free(parsed p) { yajl_tree_free((yajl_val)(uintptr_t)p); }

static bool is_a(parsed p, yajl_type type) { return p && p->type == type; }

static parsed member(parsed p, const char *key, size_t len) {
  if (is_a(p, yajl_t_array)) {
    size_t i = strtoul(key, NULL, 10);

    return i < p->u.array.len ? p->u.array.values[i] : NULL;
  }
  for (size_t i = 0; is_a(p, yajl_t_object) && i < p->u.object.len; i++)
    if (strlen(p->u.object.keys[i]) == len &&
        memcmp(p->u.object.keys[i], key, len) == 0)
      return p->u.object.values[i];
  return NULL;
}

parsed parsed_get(parsed p, const char *path) {
  while (p && *path) {
    size_t len = strcspn(path, ".");

    p = member(p, path, len);
    path += len + (path[len] == '.');
  }
  return p;
}

static parsed need(parsed p, const char *path, yajl_type type) {
  p = parsed_get(p, path);
  if (!is_a(p, type))
    fail_msg("%s is not there, or of another kind", path);
  return p;
}

static parsed need_number(parsed p, const char *path, unsigned flag) {
  p = need(p, path, yajl_t_number);
  if (!(p->u.number.flags & flag))
    fail_msg("%s is a number of another kind", path);
  return p;
}

uint64_t parsed_integer(parsed p, const char *path) {
  return (uint64_t)need_number(p, path, YAJL_NUMBER_INT_VALID)->u.number.i;
}

double parsed_decimal(parsed p, const char *path) {
  return need_number(p, path, YAJL_NUMBER_DOUBLE_VALID)->u.number.d;
}

const char *parsed_string(parsed p, const char *path) {
  return need(p, path, yajl_t_string)->u.string;
}

size_t parsed_count(parsed p, const char *path) {
  return need(p, path, yajl_t_array)->u.array.len;
}

const char *parsed_keys(parsed p, const char *path) {
  static char keys[2048];
  size_t n = 0;

  p = need(p, path, yajl_t_object);
  keys[0] = '\0';
  for (size_t i = 0; i < p->u.object.len; i++)
    n += (size_t)snprintf(keys + n, sizeof(keys) - n, "%s ",
                          p->u.object.keys[i]);
  assert_true(n < sizeof(keys));
  return keys;
}

parsed parsed_find(parsed p, const char *path, const char *key,
                   const char *value) {
  p = need(p, path, yajl_t_array);
  for (size_t i = 0; i < p->u.array.len; i++) {
    parsed found = parsed_get(p->u.array.values[i], key);

    if (is_a(found, yajl_t_string) && strcmp(found->u.string, value) == 0)
      return p->u.array.values[i];
  }
  return NULL;
}

parsed parsed_process(parsed p, uint64_t pid) {
  p = need(p, "processes", yajl_t_array);
  for (size_t i = 0; i < p->u.array.len; i++)
    if (parsed_integer(p->u.array.values[i], "pid") == pid)
      return p->u.array.values[i];
  fail_msg("there is no process %u", (unsigned)pid);
  return NULL;
}

static void assert_number(parsed p, const char *path, const char *text) {
  char *unit;
  double expected = strtod(text, &unit);
  double found = strchr(text, '.') ? parsed_decimal(p, path)
                                   : (double)parsed_integer(p, path);

  if (*unit)
    expected *= *unit == 'm' ? (double)MIB : (double)KIB;
  if (found != expected)
    fail_msg("%s is %.17g and not %s", path, found, text);
}

void parsed_assert(parsed p, const char *values) {
  char path[64], text[128];
  int len;

  for (; sscanf(values, " %63[^=]=%127s%n", path, text, &len) == 2;
       values += len)
    if (YAJL_IS_STRING(parsed_get(p, path)))
      assert_string_equal(parsed_string(p, path), text);
    else
      assert_number(p, path, text);
  assert_string_equal(values, "");
}
