#include "explain.h"
#include "memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- words ---- */

static const struct {
  const char *source;
  const char *words;
} sources[] = {
    {"read", "read from the kernel in this interval"},
    {"sampled", "too large to be read at once: sampled in this interval"},
    {"estimated", "estimated from an earlier reading"},
    {"guessed", "never read: guessed from the rest of its group"},
    {"statm", "only statm was read: Refresh is never, or it is in no group"},
    {"unreadable", "only statm was read: the kernel refused the rest, or "
                   "reading it failed"},
    {"parent", "shares its parent's memory and is counted there"},
};

static const struct {
  const char *deferred;
  const char *words;
} deferrals[] = {
    {"budget", "ReadBudget was used up"},
    {"max_lock_hold",
     "reading it would hold its lock for longer than MaxLockHold"},
    {"hung", "an earlier reading hung for ReadTimeout"},
};

/* Why a group has no values of a control group. */
static const struct {
  const char *absence;
  const char *words;
} absences[] = {
    {"not_asked", "the rule goes by no Unit, Slice, Container or Cgroup"},
    {"empty", "it has no process"},
    {"unknown", "the control group of a process is unknown"},
    {"root", "its processes have no control group in common but the root"},
    {"shared", "other processes are in its control group, too"},
    {"out_of_sight", "no mounted hierarchy shows its control group"},
    {"elsewhere", "the memory controller has its processes elsewhere"},
    {"no_memory", "the memory controller is not enabled for it"},
    {"hung", "reading its files hangs"},
};

static const char *find_words(const char *key) {
  for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
    if (strcmp(key, sources[i].source) == 0)
      return sources[i].words;
  for (size_t i = 0; i < sizeof(deferrals) / sizeof(*deferrals); i++)
    if (strcmp(key, deferrals[i].deferred) == 0)
      return deferrals[i].words;
  return key;
}

/* Begins a line with its label. */
static void begin(struct text *t, const char *label) {
  text_clear(t);
  text_addf(t, "  %-12s ", label);
}

/* Rules are numbered from 1, in the order in which they are tried. */
static void add_rule(struct text *t, const struct document *d, uint64_t rule,
                     const struct style *s) {
  text_addf(t, "%ju: ", (uintmax_t)rule + 1);
  text_add_name(t, d->rules[rule], s);
}

/* ---- one process ---- */

/* The group into which a rule has put the process, or NULL. */
static const char *group_of_rule(const struct document *d,
                                 const struct process *p, uint64_t rule) {
  for (size_t i = 0; i < p->n_groups; i++) {
    const struct group *g = document_group(d, p->groups[i]);

    if (g && g->rule == rule)
      return g->name;
  }
  return NULL;
}

static void print_head(const struct process *p, const struct style *s) {
  struct text t = {0};
  const char *command = process_command(p);

  text_addf(&t, "%ju ", (uintmax_t)p->pid);
  text_add_name(&t, p->comm ? p->comm : "-", s);
  if (command && command != p->comm) {
    text_add(&t, ": ");
    text_add_name(&t, command, s);
  }
  text_print(&t, COLOUR_BOLD, s);
  text_done(&t);
}

static void print_groups(const struct process *p, struct text *t,
                         const struct style *s) {
  begin(t, p->n_groups == 1 ? "group" : "groups");
  for (size_t i = 0; i < p->n_groups; i++) {
    if (i > 0)
      text_add(t, ", ");
    text_add_name(t, p->groups[i], s);
  }
  if (p->n_groups == 0)
    text_add(t, "none");
  text_print(t, COLOUR_NONE, s);
}

static void print_rule(const struct document *d, const struct process *p,
                       struct text *t, const struct style *s) {
  begin(t, "rule");
  if (p->rule == UNKNOWN)
    text_add(t, "none matches");
  else
    add_rule(t, d, p->rule, s);
  text_print(t, COLOUR_NONE, s);
  if (!p->is_inherited)
    return;
  begin(t, "");
  text_add(t, "inherited from an ancestor that the rule matches");
  text_print(t, COLOUR_NONE, s);
}

/* Other rules that match: with Continue, or shadowed by an earlier rule. */
static void print_also(const struct document *d, const struct process *p,
                       struct text *t, const struct style *s) {
  for (size_t i = 0; i < p->n_also; i++) {
    const char *group = group_of_rule(d, p, p->also[i]);

    begin(t, group ? "also in" : "shadowed");
    if (group) {
      text_add_name(t, group, s);
      text_add(t, ", by rule ");
    }
    add_rule(t, d, p->also[i], s);
    text_print(t, COLOUR_NONE, s);
  }
}

/* It has amounts that no reading has shown. */
static bool is_beyond_reading(const struct process *p) {
  return p->source && amounts_get(&p->amounts, AMOUNT_PSS) != UNKNOWN &&
         (strcmp(p->source, "unreadable") == 0 ||
          strcmp(p->source, "statm") == 0);
}

static void print_source(const struct process *p, struct text *t,
                         const struct style *s) {
  begin(t, "memory");
  if (p->source)
    text_add_name(t, find_words(p->source), s);
  else
    text_add(t, "of unknown source");
  if (is_beyond_reading(p))
    text_add(t, "; guessed from the rest of its group");
  if (p->pages_sampled != UNKNOWN)
    text_addf(t, ", %ju pages", (uintmax_t)p->pages_sampled);
  if (!isnan(p->age)) {
    text_add(t, ", ");
    text_add_seconds(t, p->age);
    text_add(t, " old");
  }
  text_print(t, COLOUR_NONE, s);
  if (!p->deferred)
    return;
  begin(t, "deferred");
  text_add_name(t, find_words(p->deferred), s);
  text_print(t, COLOUR_NONE, s);
}

static bool add_error(uint64_t error, const char *amount, const char *before,
                      struct text *t, const struct style *s) {
  if (error == UNKNOWN || error == 0)
    return false;
  text_addf(t, "%s%s error at most ", before, amount);
  text_add_bytes(t, error, s);
  return true;
}

/* The smaps of a process that is small enough needs no word. */
static void print_mappings(const struct process *p, struct text *t,
                           const struct style *s) {
  bool is_sampled =
      p->mappings_from && strcmp(p->mappings_from, "samples") == 0;
  uint64_t pages = 0;

  if (!is_sampled &&
      !(p->mappings_from && strcmp(p->mappings_from, "maps") == 0))
    return;
  for (size_t i = 0; i < p->n_mappings; i++)
    pages = amount_add(pages, p->mappings[i].pages_sampled);
  begin(t, "mappings");
  if (!is_sampled)
    text_add(t, "from maps, which has no amounts");
  else
    text_add(t, "sampled, because smaps would hold its lock for longer than "
                "MaxLockHold");
  if (is_sampled && pages != UNKNOWN)
    text_addf(t, ", %ju pages", (uintmax_t)pages);
  text_print(t, COLOUR_NONE, s);
}

static void print_amounts(const struct process *p, struct text *t,
                          const struct style *s) {
  static const enum amount shown[] = {AMOUNT_PSS, AMOUNT_USS, AMOUNT_RSS,
                                      AMOUNT_SWAP};
  bool has_any = false;

  begin(t, "uses");
  for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
    uint64_t bytes = amounts_get(&p->amounts, shown[i]);

    if (bytes == UNKNOWN)
      continue;
    text_addf(t, "%s%s ", has_any ? ", " : "", amount_names[shown[i]]);
    text_add_bytes(t, bytes, s);
    has_any = true;
  }
  has_any |= add_error(p->pss_error, "pss", has_any ? "; " : "", t, s);
  has_any |= add_error(p->uss_error, "uss", has_any ? ", " : "", t, s);
  if (has_any)
    text_print(t, COLOUR_NONE, s);
}

static void print_process(const struct document *d, const struct process *p,
                          const struct style *s) {
  struct text t = {0};

  print_head(p, s);
  print_groups(p, &t, s);
  print_rule(d, p, &t, s);
  print_also(d, p, &t, s);
  print_source(p, &t, s);
  print_mappings(p, &t, s);
  print_amounts(p, &t, s);
  if (!isnan(p->read_cost)) {
    begin(&t, "reading it");
    text_add(&t, "takes ");
    text_add_seconds(&t, p->read_cost);
    text_add(&t, " of CPU time");
    text_print(&t, COLOUR_NONE, s);
  }
  text_done(&t);
}

/* ---- the summary ---- */

struct tally {
  uint64_t taken;     /* matched by their own attributes */
  uint64_t inherited; /* descendants of matched processes */
  uint64_t views;     /* matched with Continue */
  uint64_t shadowed;  /* taken by an earlier rule */
};

static void count(const struct document *d, struct tally *tallies,
                  uint64_t *ret_none) {
  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if (p->rule == UNKNOWN)
      ++*ret_none;
    else if (p->is_inherited)
      tallies[p->rule].inherited++;
    else
      tallies[p->rule].taken++;
    for (size_t j = 0; j < p->n_also; j++)
      if (group_of_rule(d, p, p->also[j]))
        tallies[p->also[j]].views++;
      else
        tallies[p->also[j]].shadowed++;
  }
}

static void print_tally(const struct document *d, uint64_t rule,
                        const struct tally *n, const struct style *s) {
  struct text t = {0};
  bool is_idle = n->taken + n->inherited + n->views == 0;

  text_addf(&t, "%9ju %9ju %9ju %9ju  ", (uintmax_t)n->taken,
            (uintmax_t)n->inherited, (uintmax_t)n->views,
            (uintmax_t)n->shadowed);
  add_rule(&t, d, rule, s);
  text_print(&t, is_idle ? COLOUR_RED : COLOUR_NONE, s);
  text_done(&t);
}

static void print_idle(const struct document *d, const struct tally *tallies,
                       const struct style *s) {
  struct text t = {0};

  for (size_t i = 0; i < d->n_rules; i++)
    if (tallies[i].taken + tallies[i].inherited + tallies[i].views == 0)
      text_addf(&t, "%s%zu", t.len ? ", " : "Rules that took nothing: ", i + 1);
  if (document_scope(d) && t.len)
    text_add(&t, " (a capture has the processes of one group only)");
  if (t.len)
    text_print(&t, COLOUR_NONE, s);
  text_done(&t);
}

/* The groups with that reason, in one line. */
static void print_absence(const struct document *d, size_t which,
                          const struct style *s) {
  struct text t = {0};

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (!g->cgroup_absence ||
        strcmp(g->cgroup_absence, absences[which].absence) != 0)
      continue;
    text_add(&t, t.len ? ", " : "No values of a control group: ");
    text_add_name(&t, g->name, s);
  }
  if (t.len) {
    text_addf(&t, " (%s)", absences[which].words);
    text_print(&t, COLOUR_NONE, s);
  }
  text_done(&t);
}

static void print_absences(const struct document *d, const struct style *s) {
  for (size_t i = 0; i < sizeof(absences) / sizeof(*absences); i++)
    print_absence(d, i, s);
}

void explain_print_rules(const struct document *d, const struct style *s) {
  struct tally *tallies = memory_array(NULL, d->n_rules, sizeof(*tallies));
  struct text t = {0};
  uint64_t none = 0;

  if (d->n_rules > 0)
    memset(tallies, 0, d->n_rules * sizeof(*tallies));
  count(d, tallies, &none);
  text_addf(&t, "%9s %9s %9s %9s  RULE", "MATCHED", "INHERITED", "CONTINUED",
            "SHADOWED");
  text_print(&t, COLOUR_BOLD, s);
  for (size_t i = 0; i < d->n_rules; i++)
    print_tally(d, i, &tallies[i], s);
  text_clear(&t);
  text_addf(&t, "%9ju %9s %9s %9s  none", (uintmax_t)none, "", "", "");
  text_print(&t, COLOUR_NONE, s);
  print_idle(d, tallies, s);
  print_absences(d, s);
  text_done(&t);
  free(tallies);
}

/* ---- the document ---- */

/* Up to the year 9999, because gmtime_r() fails long before 64 bits overflow;
 * or as far as 32 bits go. */
#define TIME_END                                                               \
  (sizeof(time_t) < sizeof(int64_t) ? 2147483648.0 : 253402300800.0)

static void add_time(struct text *t, double seconds) {
  time_t when = seconds < TIME_END ? (time_t)seconds : 0;
  struct tm tm;
  char words[40];

  if (isnan(seconds) || when == 0 || !gmtime_r(&when, &tm) ||
      !strftime(words, sizeof(words), "%Y-%m-%d %H:%M:%S UTC", &tm))
    text_add(t, "time unknown");
  else
    text_add(t, words);
}

static void print_document(const struct document *d, const struct style *s) {
  struct text t = {0};

  text_add_name(&t, d->host ? d->host : "-", s);
  text_add(&t, ", ");
  add_time(&t, d->time);
  if (d->trigger.message) {
    text_add(&t, ": ");
    text_add_name(&t, d->trigger.message, s);
  }
  text_print(&t, COLOUR_BOLD, s);
  text_print(&(struct text){0}, COLOUR_NONE, s);
  text_done(&t);
}

int explain_print(const struct document *d, const struct options *o,
                  const struct style *s, struct config_error *reason) {
  size_t n = 0;

  if (o->pid == UNKNOWN)
    print_document(d, s);
  for (size_t i = 0; i < d->n_processes; i++) {
    if (o->pid != UNKNOWN && d->processes[i].pid != o->pid)
      continue;
    print_process(d, &d->processes[i], s);
    n++;
  }
  if (o->pid == UNKNOWN) {
    if (n > 0)
      text_print(&(struct text){0}, COLOUR_NONE, s);
    explain_print_rules(d, s);
    return 0;
  }
  return n > 0 ? 0
               : config_error_set(reason, "there is no process %ju",
                                  (uintmax_t)o->pid);
}
