#include "rules.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* Why a group has no values of a control group. */
static const struct {
  const char *absence;
  const char *words;
} absences[] = {
    {"not_asked",
     "the rule does not select by Unit, Slice, Container, Cgroup, or PidFile "
     "with Children"},
    {"empty", "it has no processes"},
    {"unknown", "the control group of a member is unknown"},
    {"root", "its processes have only the root control group in common"},
    {"shared", "its control group has other processes, too"},
    {"out_of_sight", "no mounted hierarchy shows its control group"},
    {"elsewhere",
     "its processes are in another control group of the memory controller"},
    {"no_memory", "the memory controller is not enabled for it"},
    {"hung", "reading its files hangs"},
};

struct tally {
  uint64_t taken;     /* matched by their own attributes */
  uint64_t inherited; /* descendants of matched processes */
  uint64_t views;     /* matched with Continue */
  uint64_t shadowed;  /* taken by an earlier rule */
};

void rules_add(struct text *t, const struct document *d, uint64_t rule,
               const struct style *s) {
  text_addf(t, "%ju: ", (uintmax_t)rule + 1);
  text_add_name(t, d->rules[rule], s);
}

/* ---- the summary ---- */

/* For each rule; the last tally is of the processes that none takes. */
static struct tally *count(const struct document *d) {
  struct tally *tallies =
      memory_check(calloc(d->n_rules + 1, sizeof(*tallies)));

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if (p->rule == UNKNOWN)
      tallies[d->n_rules].taken++;
    else if (p->is_inherited)
      tallies[p->rule].inherited++;
    else
      tallies[p->rule].taken++;
    for (size_t j = 0; j < p->n_also; j++)
      if (process_group_of(d, p, p->also[j]))
        tallies[p->also[j]].views++;
      else
        tallies[p->also[j]].shadowed++;
  }
  return tallies;
}

static bool is_idle(const struct tally *n) {
  return n->taken + n->inherited + n->views == 0;
}

bool *rules_idle(const struct document *d) {
  bool *idle = memory_array(NULL, d->n_rules + 1, sizeof(*idle));
  struct tally *tallies = count(d);

  for (size_t i = 0; i < d->n_rules; i++)
    idle[i] = is_idle(&tallies[i]) && tallies[i].shadowed == 0;
  free(tallies);
  return idle;
}

static void print_tally(const struct document *d, uint64_t rule,
                        const struct tally *n, const struct style *s) {
  struct text t = {0};

  text_addf(&t, "%9ju %9ju %9ju %9ju  ", (uintmax_t)n->taken,
            (uintmax_t)n->inherited, (uintmax_t)n->views,
            (uintmax_t)n->shadowed);
  rules_add(&t, d, rule, s);
  text_print(&t, is_idle(n) ? COLOUR_RED : COLOUR_NONE, s);
  text_done(&t);
}

/* Prints the rules that take nothing, in one line: either those whose processes
 * earlier rules take, or the others. */
static void print_idle(const struct document *d, const struct tally *tallies,
                       bool is_shadowed, const struct style *s) {
  const char *title = is_shadowed ? "Rules whose processes earlier rules take: "
                                  : "Rules that took nothing: ";
  struct text t = {0};

  for (size_t i = 0; i < d->n_rules; i++)
    if (is_idle(&tallies[i]) && (tallies[i].shadowed > 0) == is_shadowed)
      text_addf(&t, "%s%zu", t.len ? ", " : title, i + 1);
  if (document_scope(d) && t.len)
    text_add(&t, " (a capture has the processes of one group only)");
  if (t.len)
    text_print(&t, COLOUR_NONE, s);
  text_done(&t);
}

/* Prints the groups with that reason, in one line. */
static void print_absence(const struct document *d, size_t which,
                          const struct style *s) {
  struct text t = {0};

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (!g->cgroup_absence ||
        strcmp(g->cgroup_absence, absences[which].absence) != 0)
      continue;
    text_add(&t, t.len ? ", " : "Groups without values of a control group: ");
    text_add_name(&t, g->name, s);
  }
  if (t.len) {
    text_addf(&t, " (%s)", absences[which].words);
    text_print(&t, COLOUR_NONE, s);
  }
  text_done(&t);
}

void rules_print(const struct document *d, const struct style *s) {
  struct text t = {0};
  struct tally *tallies = count(d);

  text_addf(&t, "%9s %9s %9s %9s  RULE", "MATCHED", "INHERITED", "CONTINUED",
            "SHADOWED");
  text_print(&t, COLOUR_BOLD, s);
  for (size_t i = 0; i < d->n_rules; i++)
    print_tally(d, i, &tallies[i], s);
  text_clear(&t);
  text_addf(&t, "%9ju %9s %9s %9s  none", (uintmax_t)tallies[d->n_rules].taken,
            "", "", "");
  text_print(&t, COLOUR_NONE, s);
  print_idle(d, tallies, false, s);
  print_idle(d, tallies, true, s);
  for (size_t i = 0; i < sizeof(absences) / sizeof(*absences); i++)
    print_absence(d, i, s);
  text_done(&t);
  free(tallies);
}

/* ---- JSON ---- */

static void write_tally(const struct document *d, uint64_t rule,
                        const struct tally *n, struct json_lines *j) {
  json_lines_begin(j, NULL, '{');
  rules_write(j, d, rule);
  json_lines_whole(j, "matched", n->taken);
  json_lines_whole(j, "inherited", n->inherited);
  json_lines_whole(j, "continued", n->views);
  json_lines_whole(j, "shadowed", n->shadowed);
  json_lines_end(j, '}');
}

void rules_write(struct json_lines *j, const struct document *d,
                 uint64_t rule) {
  json_lines_whole(j, "rule_number", rule + 1);
  json_lines_text(j, "rule", d->rules[rule]);
}

void rules_write_all(struct json_lines *j, const struct document *d) {
  struct tally *tallies = count(d);

  json_lines_begin(j, "rules", '[');
  for (size_t i = 0; i < d->n_rules; i++)
    write_tally(d, i, &tallies[i], j);
  json_lines_end(j, ']');
  json_lines_whole(j, "in_no_rule", tallies[d->n_rules].taken);
  json_lines_begin(j, "without_cgroup", '[');
  for (size_t i = 0; i < d->n_groups; i++) {
    if (!d->groups[i].cgroup_absence)
      continue;
    json_lines_begin(j, NULL, '{');
    json_lines_text(j, "group", d->groups[i].name);
    json_lines_text(j, "absence", d->groups[i].cgroup_absence);
    json_lines_end(j, '}');
  }
  json_lines_end(j, ']');
  free(tallies);
}
