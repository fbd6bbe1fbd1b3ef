/* SPDX-License-Identifier: MIT */
#include "host_lookup.h"

#include <daemon/plugin.h>

#include <netdb.h>
#include <strings.h>
#include <unistd.h>

/* The daemon takes numbers for true. */
static bool is_false(const oconfig_value_t *value) {
  static const char *const words[] = {"false", "no", "off"};

  if (value->type == OCONFIG_TYPE_BOOLEAN)
    return !value->value.boolean;
  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (value->type == OCONFIG_TYPE_STRING &&
        strcasecmp(value->value.string, words[i]) == 0)
      return true;
  return false;
}

static bool is_empty(const oconfig_value_t *value) {
  return value->type == OCONFIG_TYPE_STRING && value->value.string[0] == '\0';
}

void host_lookup_add(struct host_lookup *h, const oconfig_item_t *item) {
  if (item->values_num != 1)
    return;
  if (strcasecmp(item->key, "Hostname") == 0)
    h->has_name = !is_empty(item->values);
  else if (strcasecmp(item->key, "FQDNLookup") == 0)
    h->is_off = is_false(item->values);
}

void host_lookup_check(const struct host_lookup *h, const char *config) {
  const struct addrinfo hints = {.ai_flags = AI_CANONNAME};
  struct addrinfo *found;
  char name[256] = "";
  int rc;

  if (h->has_name || h->is_off || gethostname(name, sizeof(name) - 1) < 0)
    return;
  rc = getaddrinfo(name, NULL, &hints, &found);
  if (rc == 0)
    freeaddrinfo(found);
  else
    ERROR(
        "%s: FQDNLookup (default true): expected a host name that can be "
        "looked up, not \"%s\" (%s): add it to /etc/hosts, or set Hostname, or "
        "FQDNLookup false; without it collectd does not start",
        config, name, gai_strerror(rc));
}
