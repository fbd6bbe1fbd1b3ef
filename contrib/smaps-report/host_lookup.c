/* SPDX-License-Identifier: MIT */
#include "host_lookup.h"

#include <daemon/plugin.h>

#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

/* Until then nothing is printed; then the user reads what is waited for. */
#define SILENT_MS 1000
#define LIMIT_S 5

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

/* ---- the look-up ---- */

/* As init_hostname() of the daemon does it. A child, because getaddrinfo(3) has
 * no limit of time: a server that is silent costs it 10 s, several servers and
 * search domains a minute (glibc 2.36). */
static void look_up(const char *name, int output) {
  const struct addrinfo hints = {.ai_flags = AI_CANONNAME};
  struct addrinfo *found;
  int rc = getaddrinfo(name, NULL, &hints, &found);

  _exit(write(output, &rc, sizeof(rc)) != sizeof(rc));
}

static bool is_readable_within(int fd, int ms) {
  struct pollfd waiting = {.fd = fd, .events = POLLIN};

  return poll(&waiting, 1, ms) > 0;
}

/* Writes what getaddrinfo(3) has returned; false if it has not in time. */
static bool await_result(int fd, int *rc) {
  if (!is_readable_within(fd, SILENT_MS)) {
    fprintf(stderr,
            "smaps-report: waiting up to %d s for the look-up of this host's "
            "name, as collectd does; Hostname or FQDNLookup false avoids it\n",
            LIMIT_S);
    if (!is_readable_within(fd, LIMIT_S * 1000 - SILENT_MS))
      return false;
  }
  if (read(fd, rc, sizeof(*rc)) != sizeof(*rc))
    *rc = EAI_FAIL; /* the child has crashed in a library of nsswitch.conf(5) */
  return true;
}

static bool look_up_in_time(const char *name, int *rc) {
  int ends[2];
  bool in_time = true;
  pid_t child;

  *rc = EAI_MEMORY; /* without a child nothing is known of the name */
  if (pipe2(ends, O_CLOEXEC) < 0)
    return true;
  child = fork();
  if (child == 0)
    look_up(name, ends[1]);
  close(ends[1]);
  if (child > 0) {
    in_time = await_result(ends[0], rc);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  close(ends[0]);
  return in_time;
}

void host_lookup_check(const struct host_lookup *h, const char *config) {
  char name[256] = "";
  int rc;

  if (h->has_name || h->is_off || gethostname(name, sizeof(name) - 1) < 0)
    return;
  if (!look_up_in_time(name, &rc))
    WARNING(
        "%s: FQDNLookup (default true): the look-up of the host name \"%s\" "
        "takes longer than %d s; collectd waits for it at its start, and "
        "does not start if it fails: add the name to /etc/hosts, or set "
        "Hostname, or FQDNLookup false",
        config, name, LIMIT_S);
  else if (rc != 0)
    ERROR(
        "%s: FQDNLookup (default true): expected a host name that can be "
        "looked up, not \"%s\" (%s): add it to /etc/hosts, or set Hostname, or "
        "FQDNLookup false; without it collectd does not start",
        config, name, gai_strerror(rc));
}
