/* SPDX-License-Identifier: MIT */
#include "containers.h"

#include "text.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

/* So many control groups are shown. */
#define SHOWN_MOST 5

/* 32 hexadecimal digits or more, or a UUID, whose dashes systemd may have
 * escaped. */
#define DASH "([-_]|\\\\x2d)"
#define H4 "[0-9a-f]{4}"
static const char id_pattern[] =
    "[0-9a-f]{32}|" H4 H4 DASH H4 DASH H4 DASH H4 DASH H4 H4 H4;

/* What systemd calls a service, a slice, a device or a user's program is none,
 * and neither are a virtual machine, and the monitor of a container. */
static const char other_pattern[] =
    "\\.(service|slice|socket|mount|swap)$|^(run-|app-|machine-qemu|libpod-"
    "conmon-|crio-conmon-)";

/* The length of the path up to the end of the first part that looks like a
 * container; 0: none does. */
static size_t find_id(const char *path, const regex_t *id,
                      const regex_t *other) {
  const char *at = path;

  while (*(at += strspn(at, "/"))) {
    char part[256];
    size_t len = strcspn(at, "/");

    snprintf(part, sizeof(part), "%.*s", (int)len, at);
    at += len;
    if (regexec(id, part, 0, NULL, 0) == 0 &&
        regexec(other, part, 0, NULL, 0) != 0)
      return (size_t)(at - path);
  }
  return 0;
}

struct misread {
  struct span paths[SHOWN_MOST];
  size_t n, processes;
};

static void note_path(struct misread *m, struct span path) {
  m->processes++;
  for (size_t i = 0; i < m->n; i++)
    if (m->paths[i].len == path.len &&
        memcmp(m->paths[i].text, path.text, path.len) == 0)
      return;
  if (m->n < SHOWN_MOST)
    m->paths[m->n++] = path;
}

/* The rule that the manual explains, for the containers beside the first. */
static void add_rule(const struct span *path, struct text *t) {
  size_t len = path->len;

  while (path->text[len - 1] != '/')
    len--;
  text_addf(t, "; see \"Other containers\" in collectd-smaps(5)");
  for (size_t i = 0; i < len; i++)
    if (!isalnum((unsigned char)path->text[i]) &&
        !strchr("/._-", path->text[i]))
      return;
  text_addf(t, ": <Group \"%%{1}\"> CgroupMatch \"^%.*s([^/]+)\"", (int)len,
            path->text);
}

static char *describe(const struct misread *m) {
  struct text t = {0};

  text_addf(&t,
            "control groups look like containers of an unknown runtime, and no "
            "rule takes their processes (%zu): ",
            m->processes);
  for (size_t i = 0; i < m->n; i++)
    text_addf(&t, "%s%s", i ? ", " : "",
              escape_text(m->paths[i].text, m->paths[i].len,
                          (char[QUOTED_SIZE]){0}, QUOTED_SIZE));
  text_addf(&t, "%s", m->n == SHOWN_MOST ? " ..." : "");
  add_rule(&m->paths[0], &t);
  return t.bytes;
}

/* True if no rule takes the process but Other. */
static bool is_left_over(const struct document *d, const struct process *p) {
  return p->rule == MISSING || strncmp(d->rules[p->rule], "Other ", 6) == 0;
}

char *containers_unknown(const struct document *d) {
  struct misread m = {.n = 0};
  regex_t id, other;

  if (regcomp(&id, id_pattern, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
    return NULL;
  if (regcomp(&other, other_pattern, REG_EXTENDED | REG_NOSUB) == 0) {
    for (size_t i = 0; i < d->n_processes; i++) {
      const struct process *p = &d->processes[i];
      size_t len = p->cgroup && !p->container && is_left_over(d, p)
                       ? find_id(p->cgroup, &id, &other)
                       : 0;

      if (len)
        note_path(&m, (struct span){p->cgroup, len});
    }
    regfree(&other);
  }
  regfree(&id);
  return m.n ? describe(&m) : NULL;
}
