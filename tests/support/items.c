/* SPDX-License-Identifier: MIT */
#include "items.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_daemon.h"

static char *take(const char **at, size_t len) {
  char *text = strndup(*at, len);

  *at += len;
  return text;
}

/* Adds 'a string', a number, true or false. */
static void add_value(oconfig_item_t *item, const char **at) {
  oconfig_value_t value = {.type = OCONFIG_TYPE_STRING};
  char *end;
  double number = strtod(*at, &end);

  if (**at == '\'') {
    ++*at;
    value.value.string = take(at, strcspn(*at, "'"));
    ++*at;
  } else if (end != *at) {
    value =
        (oconfig_value_t){.type = OCONFIG_TYPE_NUMBER, .value.number = number};
    *at = end;
  } else {
    value.type = OCONFIG_TYPE_BOOLEAN;
    value.value.boolean = **at == 't';
    *at += strcspn(*at, " >\n");
  }
  item->values =
      reallocarray(item->values, (size_t)item->values_num + 1, sizeof(value));
  item->values[item->values_num++] = value;
}

/* Adds the items up to the end of the block. */
static void add_items(oconfig_item_t *block, const char **at) {
  while (*at += strspn(*at, " \n"), **at && strncmp(*at, "</", 2) != 0) {
    bool is_block = **at == '<';
    oconfig_item_t item = {.key = NULL};

    *at += is_block;
    item.key = take(at, strcspn(*at, " >\n"));
    while (*at += strspn(*at, " "), **at && **at != '>' && **at != '\n')
      add_value(&item, at);
    if (is_block) {
      ++*at;
      add_items(&item, at);
      *at += strcspn(*at, "\n");
    }
    block->children = reallocarray(
        block->children, (size_t)block->children_num + 1, sizeof(item));
    block->children[block->children_num++] = item;
  }
}

oconfig_item_t items_parse(const char *text) {
  const char *name = "'smaps'";
  oconfig_item_t block = {.key = strdup("Plugin")};

  add_value(&block, &name);
  add_items(&block, &text);
  return block;
}

void items_free(oconfig_item_t *item) {
  for (int i = 0; i < item->children_num; i++)
    items_free(&item->children[i]);
  for (int i = 0; i < item->values_num; i++)
    if (item->values[i].type == OCONFIG_TYPE_STRING)
      free(item->values[i].value.string);
  free(item->children);
  free(item->values);
  free(item->key);
}

int items_configure(const char *format, ...) {
  char text[4096];
  oconfig_item_t block;
  va_list args;
  int r;

  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  block = items_parse(text);
  r = stub.config(&block);
  items_free(&block);
  return r;
}
