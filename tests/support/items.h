/* Configuration trees, as the daemon's parser makes them. */
#ifndef SMAPS_TESTS_ITEMS_H
#define SMAPS_TESTS_ITEMS_H

#include <stdbool.h>

#include <collectd/core/daemon/collectd.h>
#include <collectd/liboconfig/oconfig.h>

#define ITEMS_MAX 16

struct item {
  oconfig_item_t self;
  oconfig_value_t values[4];
  oconfig_item_t children[ITEMS_MAX];
  struct item *child_items[ITEMS_MAX];
};

/* An item with string values, NULL behind the last. Freed with its tree. */
struct item *item(const char *key, ...);
struct item *number(const char *key, double value);
struct item *boolean(const char *key, bool value);

/* Puts the child into the parent, and returns that. */
struct item *with(struct item *parent, struct item *child);

void item_free(struct item *it);

/* Hands the block to the plugin (stub_daemon.h), and is done with it. */
int configure(struct item *block);

/* An empty <Plugin smaps>. */
struct item *plugin_block(void);

#endif
