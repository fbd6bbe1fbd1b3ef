#include "items.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "stub_daemon.h"

struct item *item(const char *key, ...) {
  struct item *it = calloc(1, sizeof(*it));
  const char *value;
  va_list args;

  it->self = (oconfig_item_t){
      .key = strdup(key), .values = it->values, .children = it->children};
  va_start(args, key);
  while ((value = va_arg(args, const char *))) {
    assert((size_t)it->self.values_num <
           sizeof(it->values) / sizeof(*it->values));
    it->values[it->self.values_num].type = OCONFIG_TYPE_STRING;
    it->values[it->self.values_num++].value.string = strdup(value);
  }
  va_end(args);
  return it;
}

struct item *number(const char *key, double value) {
  struct item *it = item(key, NULL);

  it->values[0] =
      (oconfig_value_t){.type = OCONFIG_TYPE_NUMBER, .value.number = value};
  it->self.values_num = 1;
  return it;
}

struct item *boolean(const char *key, bool value) {
  struct item *it = item(key, NULL);

  it->values[0] =
      (oconfig_value_t){.type = OCONFIG_TYPE_BOOLEAN, .value.boolean = value};
  it->self.values_num = 1;
  return it;
}

struct item *with(struct item *parent, struct item *child) {
  int n = parent->self.children_num++;

  parent->child_items[n] = child;
  parent->children[n] = child->self;
  return parent;
}

void item_free(struct item *it) {
  for (int i = 0; i < it->self.children_num; i++)
    item_free(it->child_items[i]);
  for (int i = 0; i < it->self.values_num; i++)
    if (it->values[i].type == OCONFIG_TYPE_STRING)
      free(it->values[i].value.string);
  free(it->self.key);
  free(it);
}

int configure(struct item *block) {
  int r = stub.config(&block->self);

  item_free(block);
  return r;
}

struct item *plugin_block(void) {
  /* The caller adds the options by with(). */
  return item("Plugin", "smaps", NULL);
}
