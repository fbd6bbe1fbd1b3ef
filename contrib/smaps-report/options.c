#include "options.h"

#include <smaps/name.h>

#include <stdlib.h>
#include <string.h>

static const char *const command_names[COMMANDS] = {
    [COMMAND_TABLE] = "table", [COMMAND_EXPLAIN] = "explain",
    [COMMAND_DIFF] = "diff",   [COMMAND_FOLDED] = "folded",
    [COMMAND_LIVE] = "live",
};

/* ---- the values of options ---- */

static const char *quote(const char *text, struct name *room) {
  return name_escape(text, strlen(text), room->text, sizeof(room->text));
}

static int refuse(struct reason *reason, const char *option, const char *value,
                  const char *expected) {
  struct name room;

  return reason_set(reason, "%s \"%s\": expected %s", option,
                    quote(value, &room), expected);
}

static int refuse_column(struct reason *reason, const char *option,
                         const char *name, size_t len) {
  const char *known[COLUMNS_MAX];
  struct name room;
  char word[64];
  const char *nearest;

  for (unsigned i = 0; i < column_count(); i++)
    known[i] = column_name(i);
  snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), name);
  nearest = reason_nearest(word, known, column_count());
  return reason_set(reason,
                    "%s \"%s\": expected names of columns, which -c help "
                    "lists%s%s%s",
                    option, quote(word, &room),
                    nearest ? "; did you mean " : "", nearest ? nearest : "",
                    nearest ? "?" : "");
}

static int take_sort(struct options *o, const char *value,
                     struct reason *reason) {
  o->sort = column_find(value, strlen(value));
  if (o->sort == column_count() ||
      (o->command == COMMAND_DIFF && o->sort >= AMOUNTS))
    return refuse_column(reason, "-s", value, strlen(value));
  return 0;
}

static int take_columns(struct options *o, const char *value,
                        struct reason *reason) {
  const char *at = value;

  o->wants_columns = strcmp(value, "help") == 0;
  o->n_columns = 0;
  while (!o->wants_columns) {
    size_t len = strcspn(at, ",");
    unsigned column = column_find(at, len);

    if (column == column_count())
      return refuse_column(reason, "-c", at, len);
    if (o->n_columns == TABLE_COLUMNS_MAX)
      return reason_set(reason, "-c: expected %d columns at most",
                        TABLE_COLUMNS_MAX);
    o->columns[o->n_columns++] = column;
    if (at[len] == '\0')
      break;
    at += len + 1;
  }
  return 0;
}

static int take_group(struct options *o, const char *value,
                      struct reason *reason) {
  (void)reason;
  o->group = value;
  return 0;
}

static int take_rows(struct options *o, const char *value,
                     struct reason *reason) {
  struct scan s = scan_begin(value, strlen(value));

  if (!scan_u64(&s, &o->rows_max) || !scan_is_done(&s))
    return refuse(reason, "-n", value, "a number of rows");
  return 0;
}

/* Digits with at most one point in them. Returns what is behind. */
static const char *take_decimal(const char *text, double *ret) {
  size_t len = strspn(text, "0123456789.");
  char *end;

  if (len == 0 || len > 20 || text[0] == '.')
    return NULL;
  *ret = strtod(text, &end);
  return end == text + len ? end : NULL;
}

static int take_limit(struct options *o, const char *value,
                      struct reason *reason) {
  static const char units[] = "KMGT";
  struct limit limit = {.is_set = true, .text = value};
  const char *end = take_decimal(value, &limit.value);
  const char *unit = end && *end ? strchr(units, *end) : NULL;

  limit.is_percent = end && *end == '%';
  for (ptrdiff_t i = 0; unit && i <= unit - units; i++)
    limit.value *= 1024;
  if (!end || (*end && !unit && !limit.is_percent) || (*end && end[1]))
    return refuse(reason, "--fail-over", value,
                  "a percentage such as 10%, or an amount such as 64M "
                  "(K, M, G and T are powers of 1024)");
  o->limit = limit;
  return 0;
}

#define PATH_OPTION(member, option)                                            \
  static int take_##member(struct options *o, const char *value,               \
                           struct reason *reason) {                            \
    o->member = value;                                                         \
    return *value ? 0 : refuse(reason, option, value, "a path");               \
  }
PATH_OPTION(config, "-C")
PATH_OPTION(collectd, "--collectd")
PATH_OPTION(plugin_dir, "--plugin-dir")

#define SWITCH(name, assignment)                                               \
  static int take_##name(struct options *o, const char *value,                 \
                         struct reason *reason) {                              \
    (void)value;                                                               \
    (void)reason;                                                              \
    assignment;                                                                \
    return 0;                                                                  \
  }
SWITCH(reverse, o->is_reversed = true)
SWITCH(user, o->by_user = true)
SWITCH(mapping, o->by_mapping = true)
SWITCH(groups, o->only_groups = true)
SWITCH(processes, o->only_processes = true)
SWITCH(human, o->unit = UNIT_HUMAN)
SWITCH(percent, o->unit = UNIT_PERCENT)
SWITCH(no_header, o->has_header = false)
SWITCH(json, o->is_json = true)
SWITCH(total, o->has_total = true)
SWITCH(help, o->wants_help = true)
SWITCH(version, o->wants_version = true)

/* ---- options ---- */

#define TABLES (1U << COMMAND_TABLE | 1U << COMMAND_LIVE)
#define DIFF (1U << COMMAND_DIFF)
#define LIVE (1U << COMMAND_LIVE)
#define ALL ((1U << COMMANDS) - 1)

static const struct option {
  const char *name;
  const char *value; /* in the help; NULL: takes none */
  const char *help;
  int (*take)(struct options *o, const char *value, struct reason *reason);
  unsigned commands;
  char letter; /* '\0': none */
} options[] = {
    {"sort", "COLUMN", "sort by it (pss): amounts downwards, names upwards",
     take_sort, TABLES, 's'},
    {"sort", "AMOUNT", "compare this one (pss)", take_sort, DIFF, 's'},
    {"reverse", NULL, "sort the other way round", take_reverse, TABLES, 'r'},
    {"group", "GROUP", "only this group", take_group, TABLES | DIFF, 'g'},
    {"groups", NULL, "only the table of groups", take_groups, TABLES, 'G'},
    {"processes", NULL, "only the table of processes", take_processes, TABLES,
     'P'},
    {"user", NULL, "by user", take_user, TABLES, 'u'},
    {"mapping", NULL, "by mapping, of a capture", take_mapping, TABLES, 'm'},
    {"columns", "LIST", "these columns, with commas between; -c help lists all",
     take_columns, TABLES, 'c'},
    {"total", NULL, "a row with the total", take_total, TABLES, 't'},
    {"human", NULL, "amounts as 1.5M and not in KiB", take_human, TABLES | DIFF,
     'k'},
    {"percent", NULL, "amounts as percentage of the RAM", take_percent, TABLES,
     'p'},
    {"no-header", NULL, "without titles", take_no_header, TABLES | DIFF, 'H'},
    {"rows", "N", "at most N rows in each table", take_rows, DIFF, 'n'},
    {"fail-over", "LIMIT",
     "exit 1 if a group's PSS grew by more than 10%, or 64M", take_limit, DIFF,
     '\0'},
    {"json", NULL, "JSON, in bytes and seconds", take_json, TABLES | DIFF, 'j'},
    {"config", "FILE", "collectd's configuration", take_config, LIVE, 'C'},
    {"collectd", "PATH", "the collectd to run", take_collectd, LIVE, '\0'},
    {"plugin-dir", "DIR", "where smaps.so is", take_plugin_dir, LIVE, '\0'},
    {"help", NULL, "show this", take_help, ALL, 'h'},
    {"version", NULL, "show the version", take_version, ALL, 'V'},
};
#define OPTIONS (sizeof(options) / sizeof(*options))

static bool is_of(const struct option *option, enum command command) {
  return (option->commands >> command) & 1;
}

static const struct option *find_letter(enum command command, char letter) {
  for (size_t i = 0; i < OPTIONS; i++)
    if (letter && options[i].letter == letter && is_of(&options[i], command))
      return &options[i];
  return NULL;
}

static const struct option *find_name(enum command command, const char *name,
                                      size_t len) {
  for (size_t i = 0; i < OPTIONS; i++)
    if (is_of(&options[i], command) &&
        strncmp(options[i].name, name, len) == 0 &&
        options[i].name[len] == '\0')
      return &options[i];
  return NULL;
}

struct arguments {
  char **next;
  char **end;
};

/* -kHs pss, -spss */
static int take_letters(struct options *o, const char *letters,
                        struct arguments *args, struct reason *reason) {
  for (; *letters; letters++) {
    const struct option *option = find_letter(o->command, *letters);
    char word[2] = {*letters, '\0'};
    struct name room;
    int r;

    if (!option)
      return reason_set(reason, "-%s: no such option of \"%s\"",
                        quote(word, &room), command_names[o->command]);
    if (!option->value) {
      r = option->take(o, NULL, reason);
      if (r < 0)
        return r;
      continue;
    }
    if (letters[1])
      return option->take(o, letters + 1, reason);
    if (args->next == args->end)
      return reason_set(reason, "-%c: expected %s behind it", *letters,
                        option->value);
    return option->take(o, *args->next++, reason);
  }
  return 0;
}

/* --sort=pss, --sort pss */
static int take_word(struct options *o, const char *word,
                     struct arguments *args, struct reason *reason) {
  size_t len = strcspn(word, "=");
  const struct option *option = find_name(o->command, word, len);
  struct name room;

  if (!option)
    return reason_set(reason, "--%s: no such option of \"%s\"",
                      quote(word, &room), command_names[o->command]);
  if (!option->value && word[len])
    return reason_set(reason, "--%s: takes no value", option->name);
  if (!option->value)
    return option->take(o, NULL, reason);
  if (word[len])
    return option->take(o, word + len + 1, reason);
  if (args->next == args->end)
    return reason_set(reason, "--%s: expected %s behind it", option->name,
                      option->value);
  return option->take(o, *args->next++, reason);
}

/* ---- operands ---- */

static const struct {
  size_t least;
  size_t most;
  const char *words;
} operands[COMMANDS] = {
    [COMMAND_TABLE] = {1, 1, "FILE"},
    [COMMAND_EXPLAIN] = {1, 2, "FILE [PID]"},
    [COMMAND_DIFF] = {2, 2, "OLD NEW"},
    [COMMAND_FOLDED] = {1, 1, "FILE"},
    [COMMAND_LIVE] = {0, 0, ""},
};

static int take_pid(struct options *o, const char *value,
                    struct reason *reason) {
  struct scan s = scan_begin(value, strlen(value));

  if (!scan_u64(&s, &o->pid) || !scan_is_done(&s) || o->pid > UINT32_MAX)
    return refuse(reason, "PID", value, "the number of a process");
  return 0;
}

static int take_operand(struct options *o, size_t n, const char *value,
                        struct reason *reason) {
  struct name room;

  if (n >= operands[o->command].most)
    return reason_set(reason, "\"%s\": expected no more than %s",
                      quote(value, &room),
                      n > 0 ? operands[o->command].words : "options");
  if (o->command == COMMAND_EXPLAIN && n == 1)
    return take_pid(o, value, reason);
  if (!*value)
    return reason_set(reason, "expected the name of a file, not \"\"");
  o->files[n] = value;
  return 0;
}

/* ---- what goes together ---- */

bool options_shows(const struct options *o, enum row_kind kind) {
  if (o->by_user)
    return kind == ROW_USER;
  if (o->by_mapping)
    return kind == ROW_MAPPING;
  return (kind == ROW_GROUP && !o->only_processes) ||
         (kind == ROW_PROCESS && !o->only_groups);
}

/* Whether one of the tables that are shown has the n columns. */
static bool is_in_a_table(const struct options *o, const unsigned *columns,
                          size_t n) {
  for (unsigned kind = 0; kind < ROW_KINDS; kind++) {
    bool has_all = options_shows(o, (enum row_kind)kind);

    for (size_t i = 0; i < n && has_all; i++)
      has_all = column_is_of(columns[i], (enum row_kind)kind);
    if (has_all)
      return true;
  }
  return false;
}

static int check_together(const struct options *o, struct reason *reason) {
  int views = o->by_user + o->by_mapping + o->only_groups + o->only_processes;

  if (views > 1)
    return reason_set(reason, "-u, -m, -G and -P: expected one at most");
  if (!is_in_a_table(o, &o->sort, 1))
    return reason_set(reason, "-s \"%s\": expected a column of this table",
                      column_name(o->sort));
  if (!is_in_a_table(o, o->columns, o->n_columns))
    return reason_set(reason, "-c: expected columns of one table; see -c help");
  if (o->command == COMMAND_DIFF && o->files[0] && o->files[1] &&
      strcmp(o->files[0], "-") == 0 && strcmp(o->files[1], "-") == 0)
    return reason_set(reason, "\"-\": expected it once at most");
  return 0;
}

static enum command find_command(struct arguments *args) {
  for (unsigned i = 0; i < COMMANDS && args->next < args->end; i++)
    if (strcmp(*args->next, command_names[i]) == 0) {
      args->next++;
      return (enum command)i;
    }
  return COMMAND_TABLE;
}

static int take_all(struct options *o, struct arguments *args, size_t *ret_n,
                    struct reason *reason) {
  bool has_ended = false;
  size_t n = 0;
  int r = 0;

  while (r == 0 && args->next < args->end) {
    const char *arg = *args->next++;

    if (!has_ended && strcmp(arg, "--") == 0)
      has_ended = true;
    else if (has_ended || arg[0] != '-' || !arg[1])
      r = take_operand(o, n++, arg, reason);
    else if (arg[1] == '-')
      r = take_word(o, arg + 2, args, reason);
    else
      r = take_letters(o, arg + 1, args, reason);
  }
  *ret_n = n;
  return r;
}

int options_parse(int argc, char **argv, struct options *ret,
                  struct reason *reason) {
  struct arguments args = {.next = argv + (argc > 0), .end = argv + argc};
  struct options o = {.pid = UNKNOWN,
                      .sort = AMOUNT_PSS,
                      .rows_max = UNKNOWN,
                      .has_header = true};
  size_t n;
  int r;

  o.command = find_command(&args);
  r = take_all(&o, &args, &n, reason);
  if (r < 0)
    return r;
  if (!o.wants_help && !o.wants_version && !o.wants_columns) {
    if (n < operands[o.command].least)
      return reason_set(reason, "expected %s; see --help",
                        operands[o.command].words);
    r = check_together(&o, reason);
  }
  if (r == 0)
    *ret = o;
  return r;
}

/* ---- help ---- */

static const char *const descriptions[COMMANDS] = {
    [COMMAND_TABLE] = "Who uses how much memory, from a snapshot of collectd's "
                      "smaps plugin.\nFILE may be - for standard input.",
    [COMMAND_EXPLAIN] = "Which rule has taken each process of a snapshot, and "
                        "how it was read.",
    [COMMAND_DIFF] = "What has grown, shrunk, come and gone between two "
                     "snapshots.",
    [COMMAND_FOLDED] = "PSS by group, process and mapping, as flame graph "
                       "programs take it.",
    [COMMAND_LIVE] = "Runs the plugin once, by collectd -T with your "
                     "configuration of it, and shows\nwhat it has found.",
};

static void print_usage(enum command command, FILE *out) {
  fprintf(out, "%s smaps-report %s%s[options]%s%s\n",
          command == COMMAND_TABLE ? "Usage:" : "      ",
          command == COMMAND_TABLE ? "" : command_names[command],
          command == COMMAND_TABLE ? "" : " ",
          *operands[command].words ? " " : "", operands[command].words);
}

void options_print_help(enum command command, FILE *out) {
  if (command == COMMAND_TABLE)
    for (unsigned i = 0; i < COMMANDS; i++)
      print_usage((enum command)i, out);
  else
    fprintf(out, "Usage: smaps-report %s [options] %s\n",
            command_names[command], operands[command].words);
  fprintf(out, "\n%s\n\n", descriptions[command]);
  for (size_t i = 0; i < OPTIONS; i++) {
    const struct option *o = &options[i];
    char letter[8] = "    ", words[40];

    if (!is_of(o, command))
      continue;
    if (o->letter)
      snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    snprintf(words, sizeof(words), "%s--%s%s%s", letter, o->name,
             o->value ? " " : "", o->value ? o->value : "");
    fprintf(out, "  %-24s %s\n", words, o->help);
  }
}

void options_print_columns(FILE *out) {
  static const char *const kinds[ROW_KINDS] = {"groups", "processes", "users",
                                               "mappings"};

  for (unsigned i = 0; i < column_count(); i++) {
    fprintf(out, "%-18s", column_name(i));
    for (unsigned kind = 0; kind < ROW_KINDS; kind++)
      if (column_is_of(i, (enum row_kind)kind))
        fprintf(out, " %s", kinds[kind]);
    fputc('\n', out);
  }
}
