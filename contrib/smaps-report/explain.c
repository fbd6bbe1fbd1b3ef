/* SPDX-License-Identifier: MIT */
#include "explain.h"
#include "heading.h"
#include "json_lines.h"
#include "memory.h"
#include "reasons.h"

#include <smaps/text.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

/* Explains sources, and why readings were deferred. */
#define KEY_AND_WORDS(name, key, words) {#key, words},
static const struct {
  const char *key;
  const char *words;
} all_words[] = {SOURCE_TABLE(KEY_AND_WORDS) ENDED_ROW(KEY_AND_WORDS)
                     DEFERRAL_TABLE(KEY_AND_WORDS)};

static const char *find_words(const char *key) {
  for (size_t i = 0; i < sizeof(all_words) / sizeof(*all_words); i++)
    if (strcmp(key, all_words[i].key) == 0)
      return all_words[i].words;
  return key;
}

/* Begins a line with its label. */
static void begin(struct text *t, const char *label) {
  text_clear(t);
  text_addf(t, "  %-12s ", label);
}

/* ---- one process ---- */

static void add_rule(struct text *t, const struct document *d, uint64_t rule,
                     const struct style *s) {
  text_addf(t, "%ju: ", (uintmax_t)rule + 1);
  text_add_name(t, d->rules[rule], s);
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
    text_add(t, process_is_unknown(p) ? "unknown" : "none");
  text_print(t, COLOUR_NONE, s);
}

static void print_rule(const struct document *d, const struct process *p,
                       struct text *t, const struct style *s) {
  begin(t, "rule");
  if (process_is_unknown(p))
    text_add(t, "unknown: the process could not be identified");
  else if (p->rule == MISSING)
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
    const char *group = process_group_of(d, p, p->also[i]);

    begin(t, group ? "also in" : "shadowed");
    if (group) {
      text_add_name(t, group, s);
      text_add(t, ", by rule ");
    }
    add_rule(t, d, p->also[i], s);
    text_print(t, COLOUR_NONE, s);
  }
}

/* True if it has amounts that no reading has shown. */
static bool is_beyond_reading(const struct process *p) {
  return amounts_get(&p->amounts, AMOUNT_PSS) != MISSING &&
         (process_is_from(p, "unreadable") || process_is_from(p, "statm"));
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
  if (p->pages_sampled != MISSING)
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
  if (error == MISSING || error == 0)
    return false;
  text_addf(t, "%s%s error at most ", before, amount);
  text_add_bytes(t, error, s);
  return true;
}

static void print_amounts(const struct process *p, struct text *t,
                          const struct style *s) {
  static const enum amount shown[] = {AMOUNT_PSS, AMOUNT_USS, AMOUNT_RSS,
                                      AMOUNT_SWAP};
  bool has_any = false;

  begin(t, "uses");
  for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
    uint64_t bytes = amounts_get(&p->amounts, shown[i]);

    if (bytes == MISSING)
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

static void print_cut(const struct process *p, struct text *t,
                      const struct style *s) {
  if (!reasons_is_cut(p))
    return;
  begin(t, "command");
  text_add(t, "cut at 4096 bytes; rules do not see the rest");
  text_print(t, COLOUR_NONE, s);
}

#define SEEN(name, key, selector) {#selector, offsetof(struct process, key)},
static const struct {
  const char *selector;
  size_t field;
} attributes[] = {ATTRIBUTE_TABLE(SEEN, SEEN)};
#define ATTRIBUTES (sizeof(attributes) / sizeof(*attributes))

/* As a selector has it in its configuration, and as rules are shown: cut at 200
 * bytes. */
static void add_attribute(struct text *t, const struct process *p, size_t i) {
  const void *field = (const char *)p + attributes[i].field;
  const char *value = *(const char *const *)field;
  char quoted[201];

  if (value)
    text_addf(t, "%s \"%s\"", attributes[i].selector,
              quote_text(value, quoted, sizeof(quoted)));
  else
    text_addf(t, "%s: none or unknown", attributes[i].selector);
}

/* True if the rule was tried before one took the process, and did not match. */
static bool is_passed(const struct process *p, uint64_t rule) {
  for (size_t i = 0; i < p->n_also; i++)
    if (p->also[i] == rule)
      return false;
  return rule < p->rule && !process_is_unknown(p);
}

static void print_selection(const struct document *d, const struct process *p,
                            struct text *t, const struct style *s) {
  for (size_t i = 0; i < ATTRIBUTES; i++) {
    begin(t, i == 0 ? "seen as" : "");
    add_attribute(t, p, i);
    text_print(t, COLOUR_NONE, s);
  }
  for (uint64_t i = 0; i < d->n_rules; i++) {
    if (!is_passed(p, i))
      continue;
    begin(t, "not in rule");
    add_rule(t, d, i, s);
    text_print(t, COLOUR_NONE, s);
  }
}

/* is_one: also with what its selectors see, and the rules that do not take it.
 */
static void print_process(const struct document *d, const struct process *p,
                          bool is_one, const struct style *s) {
  struct text t = {0};

  print_head(p, s);
  print_groups(p, &t, s);
  print_rule(d, p, &t, s);
  print_also(d, p, &t, s);
  print_cut(p, &t, s);
  if (is_one)
    print_selection(d, p, &t, s);
  print_source(p, &t, s);
  print_amounts(p, &t, s);
  text_done(&t);
}

/* ---- groups: the causes of their errors ---- */

/* Of PSS. Errors that are less are left out, as are causes that would be shown
 * as 0.0 %. */
#define LEAST_ERROR 0.001
#define LEAST_PART 0.0005

#define CAUSE_PART(name, key, words) {#key, words, 0},
static const struct cause_part table[ALL_CAUSES] = {CAUSE_TABLE(CAUSE_PART)};

/* Equal parts stay in the order of the table. */
static void insert(struct cause_part *parts, size_t n, struct cause_part part) {
  for (; n > 0 && parts[n - 1].bytes < part.bytes; n--)
    parts[n] = parts[n - 1];
  parts[n] = part;
}

static bool is_worth_showing(const struct group *g) {
  uint64_t pss = amounts_get(&g->amounts, AMOUNT_PSS);

  return g->pss_error_by && g->pss_error != MISSING && pss != MISSING &&
         pss > 0 && (double)g->pss_error >= LEAST_ERROR * (double)pss;
}

size_t explain_causes(const struct group *g,
                      struct cause_part ret[ALL_CAUSES]) {
  uint64_t pss = amounts_get(&g->amounts, AMOUNT_PSS);
  size_t n = 0;

  if (!is_worth_showing(g))
    return 0;
  for (int i = 0; i < ALL_CAUSES; i++) {
    struct cause_part part = table[i];

    part.bytes = amount_or_0(g->pss_error_by->bytes[i]);
    if ((double)part.bytes >= LEAST_PART * (double)pss)
      insert(ret, n++, part);
  }
  return n;
}

void explain_add_percent(struct text *t, const struct group *g,
                         uint64_t bytes) {
  double pss = (double)amounts_get(&g->amounts, AMOUNT_PSS);

  text_addf(t, "%.1f %%", 100 * ((double)bytes / pss));
}

/* A line for each cause, because lines are cut at the terminal. */
static void print_group(const struct group *g, const struct style *s) {
  struct cause_part parts[ALL_CAUSES];
  struct text t = {0};
  size_t n = explain_causes(g, parts);

  text_add(&t, "group ");
  text_add_name(&t, g->name, s);
  text_print(&t, COLOUR_BOLD, s);
  begin(&t, "pss");
  text_add_bytes(&t, amounts_get(&g->amounts, AMOUNT_PSS), s);
  if (n > 0) {
    text_add_name(&t, s->is_utf8 ? " ± " : " +- ", s);
    explain_add_percent(&t, g, g->pss_error);
    text_add(&t, ":");
  }
  text_print(&t, COLOUR_NONE, s);
  for (size_t i = 0; i < n; i++) {
    begin(&t, "");
    explain_add_percent(&t, g, parts[i].bytes);
    text_addf(&t, " because %s%s", parts[i].words, i + 1 < n ? "," : "");
    text_print(&t, COLOUR_NONE, s);
  }
  text_done(&t);
}

/* ---- rules ---- */

/* Why a group has no values of a control group. */
static const struct {
  const char *absence;
  const char *words;
} absences[] = {ABSENCE_TABLE(KEY_AND_WORDS)};

struct tally {
  uint64_t taken;     /* matched by their own attributes */
  uint64_t inherited; /* descendants of matched processes */
  uint64_t views;     /* matched with Continue */
  uint64_t shadowed;  /* taken by an earlier rule */
};

/* For each rule; the last tally is of the processes that none takes. */
static struct tally *count(const struct document *d) {
  struct tally *tallies =
      memory_check(calloc(d->n_rules + 1, sizeof(*tallies)));

  for (size_t i = 0; i < d->n_processes; i++) {
    const struct process *p = &d->processes[i];

    if (p->rule == MISSING)
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

bool *explain_idle_rules(const struct document *d) {
  bool *idle = memory_array(NULL, d->n_rules + 1, sizeof(*idle));
  struct tally *tallies = count(d);

  for (size_t i = 0; i < d->n_rules; i++)
    idle[i] = is_idle(&tallies[i]) && tallies[i].shadowed == 0;
  free(tallies);
  return idle;
}

/* It may take nothing without a mistake: not every host has containers, and
 * rules may leave nothing to Other. */
static bool may_be_idle(const char *rule) {
#define TEXT(name, selector, pattern) RULE_TEXT(name, selector, pattern),
  static const char *const texts[] = {DEFAULT_RULE_TABLE(TEXT)};

  for (size_t i = 0; rule && i < sizeof(texts) / sizeof(*texts); i++)
    if (strcmp(rule, texts[i]) == 0)
      return true;
  return rule && strncmp(rule, "Other ", 6) == 0;
}

static bool is_suspect(const struct document *d, uint64_t rule,
                       const struct tally *n) {
  return is_idle(n) && !may_be_idle(d->rules[rule]);
}

static void print_tally(const struct document *d, uint64_t rule,
                        const struct tally *n, const struct style *s) {
  struct text t = {0};

  text_addf(&t, "%9ju %9ju %9ju %9ju  ", (uintmax_t)n->taken,
            (uintmax_t)n->inherited, (uintmax_t)n->views,
            (uintmax_t)n->shadowed);
  add_rule(&t, d, rule, s);
  text_print(&t, is_suspect(d, rule, n) ? COLOUR_RED : COLOUR_NONE, s);
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
    if (is_suspect(d, i, &tallies[i]) &&
        (tallies[i].shadowed > 0) == is_shadowed)
      text_addf(&t, "%s%zu", t.len ? ", " : title, i + 1);
  if (document_scope(d) && t.len)
    text_add(&t, " (a capture has the processes of one group only)");
  if (t.len)
    text_print(&t, COLOUR_NONE, s);
  text_done(&t);
}

/* By the rule, or because the rule took nothing, which is printed. */
static bool is_expected(const char *absence) {
  return strcmp(absence, "not_asked") == 0 || strcmp(absence, "empty") == 0;
}

/* Prints the groups with that reason, in one line; `only`: no other group. */
static void print_absence(const struct document *d, size_t which,
                          const struct group *only, const struct style *s) {
  struct text t = {0};

  for (size_t i = 0; i < d->n_groups; i++) {
    const struct group *g = &d->groups[i];

    if (!g->cgroup_absence || (only && g != only) ||
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

static void print_reason(void *ctx, const char *line) {
  const struct style *s = ctx;
  struct text t = {0};

  text_add(&t, line);
  text_print(&t, COLOUR_NONE, s);
  text_done(&t);
}

static void write_reason(void *ctx, const char *line) {
  json_lines_text(ctx, NULL, line);
}

static void find_reasons(const struct document *d,
                         void (*add)(void *ctx, const char *line), void *ctx) {
  bool *is_idle = explain_idle_rules(d);

  reasons_find(d, is_idle, add, ctx);
  free(is_idle);
}

static void print_titles(const struct style *s) {
  struct text t = {0};

  text_addf(&t, "%9s %9s %9s %9s  RULE", "MATCHED", "INHERITED", "CONTINUED",
            "SHADOWED");
  text_print(&t, COLOUR_BOLD, s);
  text_done(&t);
}

void explain_rules(const struct document *d, bool is_check,
                   const struct style *s) {
  struct style style = *s;
  struct text t = {0};
  struct tally *tallies = count(d);

  print_titles(s);
  for (size_t i = 0; i < d->n_rules; i++)
    print_tally(d, i, &tallies[i], s);
  text_addf(&t, "%9ju %9s %9s %9s  none", (uintmax_t)tallies[d->n_rules].taken,
            "", "", "");
  text_print(&t, COLOUR_NONE, s);
  print_idle(d, tallies, false, s);
  print_idle(d, tallies, true, s);
  for (size_t i = 0; i < sizeof(absences) / sizeof(*absences); i++)
    if (!is_check || !is_expected(absences[i].absence))
      print_absence(d, i, NULL, s);
  find_reasons(d, print_reason, &style);
  text_done(&t);
  free(tallies);
}

/* ---- one group ---- */

static void print_one_group(const struct document *d, const struct group *g,
                            const struct style *s) {
  struct tally *tallies = count(d);

  heading_print(d, s);
  text_print(&(struct text){0}, COLOUR_NONE, s);
  print_group(g, s);
  for (size_t i = 0; i < sizeof(absences) / sizeof(*absences); i++)
    print_absence(d, i, g, s);
  if (g->rule != MISSING) {
    text_print(&(struct text){0}, COLOUR_NONE, s);
    print_titles(s);
    print_tally(d, g->rule, &tallies[g->rule], s);
  }
  free(tallies);
}

/* ---- JSON ---- */

static void write_rule(struct json_lines *j, const struct document *d,
                       uint64_t rule) {
  json_lines_whole(j, "rule_number", rule + 1);
  json_lines_text(j, "rule", d->rules[rule]);
}

static void write_other_rules(const struct document *d, const struct process *p,
                              bool is_taken, const char *key,
                              struct json_lines *j) {
  json_lines_begin(j, key, '[');
  for (size_t i = 0; i < p->n_also; i++) {
    const char *group = process_group_of(d, p, p->also[i]);

    if ((group != NULL) != is_taken)
      continue;
    json_lines_begin(j, NULL, '{');
    write_rule(j, d, p->also[i]);
    json_lines_text(j, "group", group);
    json_lines_end(j, '}');
  }
  json_lines_end(j, ']');
}

static void write_amounts(const struct process *p, struct json_lines *j) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    json_lines_whole(j, amount_names[i],
                     amounts_get(&p->amounts, (enum amount)i));
  json_lines_whole(j, "pss_error", p->pss_error);
  json_lines_whole(j, "uss_error", p->uss_error);
}

static void write_process(const struct document *d, const struct process *p,
                          struct json_lines *j) {
  json_lines_begin(j, NULL, '{');
  json_lines_whole(j, "pid", p->pid);
  json_lines_text(j, "comm", p->comm);
  json_lines_text(j, "command", process_command(p));
  json_lines_names(j, "groups", p->groups, p->n_groups);
  if (p->rule != MISSING)
    write_rule(j, d, p->rule);
  json_lines_flag(j, "inherited", p->is_inherited);
  write_other_rules(d, p, true, "continued", j);
  write_other_rules(d, p, false, "shadowed", j);
  json_lines_text(j, "source", p->source);
  json_lines_whole(j, "pages_sampled", p->pages_sampled);
  json_lines_real(j, "age", p->age);
  json_lines_text(j, "deferred", p->deferred);
  json_lines_text(j, "mappings_from", p->mappings_from);
  json_lines_real(j, "read_cost", p->read_cost);
  write_amounts(p, j);
  json_lines_end(j, '}');
}

static void write_group(const struct group *g, struct json_lines *j) {
  struct cause_part parts[ALL_CAUSES];
  size_t n = explain_causes(g, parts);

  json_lines_begin(j, NULL, '{');
  json_lines_text(j, "name", g->name);
  json_lines_whole(j, "pss", amounts_get(&g->amounts, AMOUNT_PSS));
  json_lines_whole(j, "pss_error", g->pss_error);
  json_lines_begin(j, "causes", '[');
  for (size_t i = 0; i < n; i++) {
    json_lines_begin(j, NULL, '{');
    json_lines_text(j, "cause", parts[i].name);
    json_lines_whole(j, "bytes", parts[i].bytes);
    json_lines_text(j, "words", parts[i].words);
    json_lines_end(j, '}');
  }
  json_lines_end(j, ']');
  json_lines_end(j, '}');
}

static void write_groups(const struct document *d, const struct group *only,
                         struct json_lines *j) {
  json_lines_begin(j, "groups", '[');
  for (size_t i = 0; i < d->n_groups; i++)
    if (!only || only == &d->groups[i])
      write_group(&d->groups[i], j);
  json_lines_end(j, ']');
}

static void write_tally(const struct document *d, uint64_t rule,
                        const struct tally *n, struct json_lines *j) {
  json_lines_begin(j, NULL, '{');
  write_rule(j, d, rule);
  json_lines_whole(j, "matched", n->taken);
  json_lines_whole(j, "inherited", n->inherited);
  json_lines_whole(j, "continued", n->views);
  json_lines_whole(j, "shadowed", n->shadowed);
  json_lines_end(j, '}');
}

static void write_rules(struct json_lines *j, const struct document *d) {
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
  json_lines_begin(j, "reasons", '[');
  find_reasons(d, write_reason, j);
  json_lines_end(j, ']');
  free(tallies);
}

/* ---- both ---- */

static bool is_wanted(const struct options *o, const struct process *p) {
  return o->pid == MISSING || p->pid == o->pid;
}

static void print_processes(const struct document *d, const struct options *o,
                            const struct style *s) {
  for (size_t i = 0; i < d->n_processes; i++)
    if (is_wanted(o, &d->processes[i]))
      print_process(d, &d->processes[i], o->pid != MISSING, s);
}

static void print_all(const struct document *d, const struct options *o,
                      const struct style *s) {
  heading_print(d, s);
  text_print(&(struct text){0}, COLOUR_NONE, s);
  print_processes(d, o, s);
  for (size_t i = 0; i < d->n_groups; i++)
    if (is_worth_showing(&d->groups[i]))
      print_group(&d->groups[i], s);
  if (d->n_processes > 0)
    text_print(&(struct text){0}, COLOUR_NONE, s);
  explain_rules(d, false, s);
}

/* group: of -g, or NULL. */
static void write_all(const struct document *d, const struct options *o,
                      const struct group *group, FILE *out) {
  struct json_lines j = {.out = out};

  json_lines_begin(&j, NULL, '{');
  heading_write(d, &j);
  json_lines_begin(&j, "processes", '[');
  for (size_t i = 0; i < d->n_processes && !group; i++)
    if (is_wanted(o, &d->processes[i]))
      write_process(d, &d->processes[i], &j);
  json_lines_end(&j, ']');
  if (o->pid == MISSING) {
    write_groups(d, group, &j);
    write_rules(&j, d);
  }
  json_lines_end(&j, '}');
}

static bool has_process(const struct document *d, const struct options *o) {
  for (size_t i = 0; i < d->n_processes; i++)
    if (is_wanted(o, &d->processes[i]))
      return true;
  return false;
}

int explain_print(const struct document *d, const struct options *o,
                  const struct style *s, struct config_error *reason) {
  const struct group *group = o->group ? document_group(d, o->group) : NULL;

  if (o->group && !group)
    return config_error_set(reason, "there is no group \"%s\"",
                            QUOTED(o->group));
  if (o->pid != MISSING && !has_process(d, o))
    return config_error_set(reason, "there is no process %ju",
                            (uintmax_t)o->pid);
  if (o->is_json)
    write_all(d, o, group, s->out);
  else if (group)
    print_one_group(d, group, s);
  else if (o->pid != MISSING)
    print_processes(d, o, s);
  else
    print_all(d, o, s);
  return 0;
}
