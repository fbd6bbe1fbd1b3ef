/* SPDX-License-Identifier: MIT */
#include "reasons.h"

#include "memory.h"
#include "text.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* CMDLINE_MAX of the plugin; the last byte may be a blank that was cut off. */
#define COMMAND_LINE_MAX 4096

struct lines {
  void (*add)(void *ctx, const char *line);
  void *ctx;
  struct text line;
};

/* Names become ASCII. */
static const struct style plain;

static void end_line(struct lines *l) {
  if (l->line.len > 0)
    l->add(l->ctx, l->line.bytes);
  text_clear(&l->line);
}

static bool has_option(const char *rule, const char *option) {
  return rule && strstr(rule, option);
}

/* ---- command lines ---- */

bool reasons_is_cut(const struct process *p) {
  return p->command_line && strlen(p->command_line) >= COMMAND_LINE_MAX - 1;
}

static void find_cut(const struct document *d, struct lines *l) {
  const struct process *first = NULL;
  bool is_used = false;
  size_t n = 0;

  for (size_t i = 0; i < d->n_rules; i++)
    is_used |= has_option(d->rules[i], "CommandLine") ||
               has_option(d->rules[i], "ProcessMatch");
  for (size_t i = 0; is_used && i < d->n_processes; i++)
    if (reasons_is_cut(&d->processes[i])) {
      first = first ? first : &d->processes[i];
      n++;
    }
  if (n == 0)
    return;
  text_addf(&l->line,
            "The command line of %zu process%s is cut at %d bytes, and rules "
            "do not see the rest; the first is %ju ",
            n, n == 1 ? "" : "es", COMMAND_LINE_MAX, (uintmax_t)first->pid);
  text_add_name(&l->line, first->comm ? first->comm : "-", &plain);
  end_line(l);
}

/* ---- names of threads ---- */

/* Copies the value of a selector by name, as in `Comm "node"`; false if the
 * rule has none, or one with quotation marks or backslashes. */
static bool find_comm(const char *rule, char *ret, size_t size) {
  static const char *const options[] = {"Process \"", " Comm \""};

  for (size_t i = 0; rule && i < sizeof(options) / sizeof(*options); i++) {
    const char *at = strstr(rule, options[i]);
    size_t len;

    if (!at)
      continue;
    at += strlen(options[i]);
    len = strcspn(at, "\"\\");
    if (at[len] != '"' || len >= size)
      continue;
    memcpy(ret, at, len);
    ret[len] = '\0';
    return len > 0;
  }
  return false;
}

static bool runs(const struct process *p, const char *glob) {
  const char *slash = p->exe ? strrchr(p->exe, '/') : NULL;

  return slash && fnmatch(glob, slash + 1, 0) == 0;
}

/* The kernel shows the name of the main thread, which a program can change. */
static void find_renamed(const struct document *d, uint64_t rule,
                         struct lines *l) {
  char comm[32];
  size_t n = 0;

  if (!find_comm(d->rules[rule], comm, sizeof(comm)))
    return;
  for (size_t i = 0; i < d->n_processes; i++)
    n += runs(&d->processes[i], comm);
  if (n == 0)
    return;
  text_addf(&l->line,
            "Rule %ju: the name of a process is that of its main thread; "
            "Executable \"*/",
            (uintmax_t)rule + 1);
  text_add_name(&l->line, comm, &plain);
  text_addf(&l->line, "\" would match %zu", n);
  end_line(l);
}

/* ---- groups of unlike processes ---- */

struct mixture {
  bool has_host, has_container;
  uint64_t other_rule; /* which makes the same name; MISSING for none */
  const struct process *container; /* the first with a name of its own */
  bool has_runtimes;
};

/* What the runtime has put before the id or name in the control group. */
static bool find_runtime(const struct process *p, const char **ret,
                         size_t *ret_len) {
  const char *id = p->cgroup && p->container && !p->pod
                       ? strstr(p->cgroup, p->container)
                       : NULL;

  if (!id)
    return false;
  for (*ret = id; *ret > p->cgroup && (*ret)[-1] != '/'; --*ret)
    ;
  *ret_len = (size_t)(id - *ret);
  return true;
}

static bool is_of_other_runtime(const struct process *a,
                                const struct process *b) {
  const char *first, *second;
  size_t first_len, second_len;

  return find_runtime(a, &first, &first_len) &&
         find_runtime(b, &second, &second_len) &&
         (first_len != second_len || memcmp(first, second, first_len) != 0);
}

/* True if the rule of the group has not put the process into it. */
static bool is_by_other_rule(const struct process *p, const struct group *g) {
  if (p->rule == MISSING || g->rule == MISSING || p->rule == g->rule)
    return false;
  for (size_t i = 0; i < p->n_also; i++)
    if (p->also[i] == g->rule)
      return false;
  return true;
}

static void mix(struct mixture *m, const struct process *p,
                const struct group *g) {
  m->has_host |= !p->container;
  m->has_container |= p->container != NULL;
  if (is_by_other_rule(p, g))
    m->other_rule = p->rule;
  if (m->container && p->container)
    m->has_runtimes |= is_of_other_runtime(m->container, p);
  else if (p->container)
    m->container = p;
}

/* Rules by name, which take host and containers alike; others mean it. */
static bool is_by_name(const char *rule) {
  static const char *const others[] = {"Unit",      "Slice", "Cgroup",
                                       "Container", "Pod",   "Namespace"};

  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
    if (has_option(rule, others[i]))
      return false;
  return has_option(rule, "Process") || has_option(rule, "Comm") ||
         has_option(rule, "Executable");
}

static void find_mixed(const struct document *d, const struct mixture *m,
                       struct lines *l) {
  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (!m[i].has_host || !m[i].has_container || g->rule == MISSING ||
        !is_by_name(d->rules[g->rule]))
      continue;
    text_add(&l->line, l->line.len ? ", "
                                   : "Groups with processes of the host and of "
                                     "containers (Container \"\" in the rule "
                                     "leaves containers out): ");
    text_add_name(&l->line, g->name, &plain);
  }
  end_line(l);
}

static void find_merged(const struct group *g, const struct mixture *m,
                        struct lines *l) {
  const char *words = " has containers of several runtimes, with one name";

  if (m->other_rule == MISSING && !m->has_runtimes)
    return;
  text_add(&l->line, "Group ");
  text_add_name(&l->line, g->name, &plain);
  if (m->other_rule == MISSING)
    text_add(&l->line, words);
  else
    text_addf(&l->line, " has processes of rules %ju and %ju, with one name",
              (uintmax_t)g->rule + 1, (uintmax_t)m->other_rule + 1);
  end_line(l);
}

static void find_unlike(const struct document *d, struct lines *l) {
  struct mixture *m = memory_array(NULL, d->n_groups + 1, sizeof(*m));

  for (size_t i = 0; i < d->n_groups; i++)
    m[i] = (struct mixture){.other_rule = MISSING};
  for (size_t i = 0; i < d->n_processes; i++)
    for (size_t j = 0; j < d->processes[i].n_groups; j++) {
      const struct process *p = &d->processes[i];
      const struct group *g = document_group(d, p->groups[j]);

      if (g)
        mix(&m[g - d->groups], p, g);
    }
  find_mixed(d, m, l);
  for (size_t i = 0; i < d->n_groups; i++)
    if (d->groups[i].rule != MISSING) {
      m[i].has_runtimes &= has_option(d->rules[d->groups[i].rule], "%{con");
      find_merged(&d->groups[i], &m[i], l);
    }
  free(m);
}

void reasons_find(const struct document *d, const bool *is_idle,
                  void (*add)(void *ctx, const char *line), void *ctx) {
  struct lines l = {.add = add, .ctx = ctx};

  find_cut(d, &l);
  for (size_t i = 0; i < d->n_rules; i++)
    if (is_idle[i])
      find_renamed(d, i, &l);
  find_unlike(d, &l);
  text_done(&l.line);
}
