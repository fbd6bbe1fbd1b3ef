/* SPDX-License-Identifier: MIT */
#include "options.h"
#include "filter.h"
#include "since.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t least, most;   /* operands */
  const char *operands; /* in words */
  const char *help;
} commands[COMMANDS] = {
    [COMMAND_TABLE] =
        {"", 1, FILES_MAX, "FILE...",
         "Shows the memory of groups and processes in a snapshot of collectd's "
         "smaps\nplugin, or in those of several hosts. FILE may be - for "
         "standard input."},
    [COMMAND_EXPLAIN] =
        {"explain", 1, 2, "FILE [PID]",
         "Shows the rule that took each process of a snapshot, and how the "
         "process was\nread. FILE may be live: this host now."},
    [COMMAND_DIFF] =
        {"diff", 2, 2, "OLD NEW",
         "Shows the groups, processes and mappings that differ between two "
         "snapshots.\nWith --since TIME [NEW] OLD is the state of that time in "
         "StateHistory, and\nNEW is StateFile, both of your configuration."},
    [COMMAND_FOLDED] =
        {"folded", 1, 1, "FILE",
         "Prints PSS by group, process and mapping, as input of flame graph "
         "programs."},
    [COMMAND_HTML] =
        {"html", 1, 2, "FILE [OLD]",
         "Prints a page for a browser: groups, processes and mappings, and "
         "what has\nchanged since OLD. It needs nothing else, and can be "
         "mailed. --since\nTIME [FILE] is as for diff."},
    [COMMAND_LIVE] =
        {"live", 0, 0, "",
         "Shows the memory of this host now, in the groups of your "
         "configuration. Needs\nno collectd and writes nothing."},
    [COMMAND_CHECK] =
        {"check", 0, 0, "",
         "Checks the options of the plugin in your configuration: prints the "
         "mistakes, or\nthe rules and how many processes each takes now. "
         "Writes nothing."},
};

/* ---- the values of options ---- */

static int refuse(struct config_error *reason, const char *option,
                  const char *value, const char *expected) {
  return config_error_set(reason, "%s \"%s\": expected %s", option,
                          QUOTED(value), expected);
}

static int refuse_column(struct config_error *reason, const char *option,
                         const char *expected, const char *name, size_t len) {
  char word[64];

  snprintf(word, sizeof(word), "%.*s", (int)(len < 63 ? len : 63), name);
  return config_error_set(reason, "%s \"%s\": expected %s, which -c help lists",
                          option, QUOTED(word), expected);
}

static int parse_sort(struct options *o, const char *value,
                      struct config_error *reason) {
  bool is_diff = o->command == COMMAND_DIFF;

  o->sort = column_find(value, strlen(value));
  if (o->sort == column_count() || (is_diff && !column_is_amount(o->sort)))
    return refuse_column(reason, "-s", is_diff ? "an amount" : "a column",
                         value, strlen(value));
  return 0;
}

static int parse_columns(struct options *o, const char *value,
                         struct config_error *reason) {
  const char *at = value;

  o->wants_columns = strcmp(value, "help") == 0;
  if (o->command == COMMAND_DIFF && !o->wants_columns)
    return refuse(reason, "-c", value, "help, which lists the amounts for -s");
  o->n_columns = 0;
  while (!o->wants_columns) {
    size_t len = strcspn(at, ",");
    unsigned column = column_find(at, len);

    if (column == column_count())
      return refuse_column(reason, "-c", "names of columns", at, len);
    if (o->n_columns == TABLE_COLUMNS_MAX)
      return config_error_set(reason, "-c: expected at most %d columns",
                              TABLE_COLUMNS_MAX);
    o->columns[o->n_columns++] = column;
    if (at[len] == '\0')
      break;
    at += len + 1;
  }
  return 0;
}

static int check_filter(const char *option, const char *value,
                        struct config_error *reason) {
  struct filter f;
  int rc = filter_compile(&f, option, value, reason);

  if (rc == 0)
    filter_done(&f);
  return rc;
}

static bool parse_number(const char *value, uint64_t most, uint64_t *ret) {
  struct cursor s = cursor_begin(value, strlen(value));

  return parse_u64(&s, ret) && cursor_is_done(&s) && *ret <= most;
}

static int parse_rows(struct options *o, const char *value,
                      struct config_error *reason) {
  if (parse_number(value, UINT64_MAX, &o->rows_max))
    return 0;
  return refuse(reason, "-n", value, "a number of rows");
}

static int parse_width(struct options *o, const char *value,
                       struct config_error *reason) {
  if (parse_number(value, 10000, &o->width))
    return 0;
  return refuse(reason, "--width", value,
                "a number of columns up to 10000, or 0 for no limit");
}

/* Parses digits with at most one point. Returns the text after them, or NULL.
 */
static const char *parse_decimal(const char *text, double *ret) {
  size_t len = strspn(text, "0123456789.");
  char *end;

  if (len == 0 || len > 20 || text[0] == '.')
    return NULL;
  *ret = strtod(text, &end);
  return end == text + len ? end : NULL;
}

static int parse_limit(struct options *o, const char *value,
                       struct config_error *reason) {
  static const char units[] = "KMGT";
  struct limit limit = {.is_set = true, .text = value};
  const char *end = parse_decimal(value, &limit.value);
  const char *unit = end && *end ? strchr(units, *end) : NULL;

  limit.is_percent = end && *end == '%';
  for (ptrdiff_t i = 0; unit && i <= unit - units; i++)
    limit.value *= 1024;
  if (!end || (!*end && limit.value > 0) ||
      (*end && !unit && !limit.is_percent) || (*end && end[1]))
    return refuse(reason, "--fail-over", value,
                  "0, a percentage such as 10%, or an amount such as 64M "
                  "(K, M, G and T are powers of 1024)");
  o->limit = limit;
  return 0;
}

static int parse_since(struct options *o, const char *value,
                       struct config_error *reason) {
  o->has_since = since_parse(value, time(NULL), &o->since);
  if (o->has_since)
    return 0;
  return refuse(reason, "--since", value,
                "an age such as 90m or 2h, or a time such as 13:20");
}

static int parse_watch(struct options *o, const char *value,
                       struct config_error *reason) {
  const char *end = parse_decimal(value, &o->watch_seconds);

  if (!end || *end || o->watch_seconds < 0.5 || o->watch_seconds > 3600)
    return refuse(reason, "--watch", value,
                  "a number of seconds from 0.5 to 3600");
  return 0;
}

/* ---- options ---- */

#define TABLES (1U << COMMAND_TABLE | 1U << COMMAND_LIVE)
#define DIFF (1U << COMMAND_DIFF)
#define EXPLAIN (1U << COMMAND_EXPLAIN)
#define RUNS (1U << COMMAND_LIVE | 1U << COMMAND_CHECK | EXPLAIN)
#define SINCE (DIFF | 1U << COMMAND_HTML)
#define CONFIGURED (RUNS | SINCE)
#define ALL ((1U << COMMANDS) - 1)

#define PARSE(name) PARSED, parse_##name, 0, 0
#define SET(field, value) FLAG, NULL, offsetof(struct options, field), value
#define SHOW(kind) SHOWN, NULL, 0, kind
#define WORD(kind, field) kind, NULL, offsetof(struct options, field), 0

static const struct definition {
  const char *name;
  const char *value; /* in the help; NULL: takes none */
  const char *help;
  enum { PARSED, FLAG, SHOWN, REGEX, NAME, PATH } kind;
  int (*parse)(struct options *o, const char *value,
               struct config_error *reason);
  size_t field;      /* of struct options, without parse() */
  unsigned char set; /* into the byte of a FLAG; of SHOWN a kind of rows */
  unsigned commands;
  char letter; /* '\0': none */
} definitions[] = {
    {"sort", "COLUMN", "sort by this column (pss): amounts down, names up",
     PARSE(sort), TABLES, 's'},
    {"sort", "AMOUNT", "compare this amount (pss)", PARSE(sort), DIFF, 's'},
    {"reverse", NULL, "reverse the order", SET(is_reversed, true), TABLES, 'r'},
    {"group", "REGEX", "show only groups of this name", WORD(REGEX, group),
     TABLES, 'g'},
    {"group", "GROUP", "show only this group", WORD(NAME, group),
     DIFF | EXPLAIN, 'g'},
    {"processfilter", "REGEX", "show only processes of this name or command",
     WORD(REGEX, process_filter), TABLES, 'P'},
    {"userfilter", "REGEX", "show only processes of this user",
     WORD(REGEX, user_filter), TABLES, 'U'},
    {"mapfilter", "REGEX", "show only mappings of this name, with -m",
     WORD(REGEX, mapping_filter), TABLES, 'M'},
    {"groups", NULL, "show only the table of groups", SHOW(ROW_GROUP), TABLES,
     'G'},
    {"processes", NULL, "show only the table of processes", SHOW(ROW_PROCESS),
     TABLES, '\0'},
    {"user", NULL, "show a table by user", SHOW(ROW_USER), TABLES, 'u'},
    {"mapping", NULL, "show a table by mapping (captures and live)",
     SHOW(ROW_MAPPING), TABLES, 'm'},
    {"system", NULL, "show where the memory of the host is", SHOW(ROW_AREA),
     TABLES, 'w'},
    {"columns", "LIST", "show these columns (pss,group); -c help lists all",
     PARSE(columns), TABLES, 'c'},
    {"columns", "help", "list the amounts that -s takes", PARSE(columns), DIFF,
     'c'},
    {"total", NULL, "add a row with the total", SET(has_total, true), TABLES,
     't'},
    {"human", NULL, "print amounts as 1.50M instead of KiB",
     SET(unit, UNIT_HUMAN), TABLES | DIFF, 'k'},
    {"percent", NULL, "print amounts in percent of the RAM",
     SET(unit, UNIT_PERCENT), TABLES, 'p'},
    {"no-header", NULL, "print no heading and no titles",
     SET(has_header, false), TABLES | DIFF, 'H'},
    {"rows", "N", "print at most N rows in each table", PARSE(rows),
     TABLES | DIFF, 'n'},
    {"width", "COLUMNS", "cut lines to this width; 0: do not cut", PARSE(width),
     ALL & ~(1U << COMMAND_FOLDED | 1U << COMMAND_HTML), '\0'},
    {"fail-over", "LIMIT", "exit 1 if a group's PSS grew by more: 10% or 64M",
     PARSE(limit), DIFF, '\0'},
    {"since", "TIME", "compare with the state of then: 13:20 or 2h",
     PARSE(since), SINCE, '\0'},
    {"json", NULL, "print JSON, in bytes and seconds", SET(is_json, true),
     TABLES | DIFF | EXPLAIN, 'j'},
    {"watch", "SECONDS", "show groups on a screen that refreshes", PARSE(watch),
     1U << COMMAND_LIVE, '\0'},
    {"source", "PATH", "read this directory, a captured /proc",
     WORD(PATH, source), 1U << COMMAND_LIVE | EXPLAIN, 'S'},
    {"config", "FILE", "read this configuration of collectd",
     WORD(PATH, config), CONFIGURED, 'C'},
    {"help", NULL, "show this help", SET(wants_help, true), ALL, 'h'},
    {"version", NULL, "show the version", SET(wants_version, true), ALL, 'V'},
};
#define DEFINITIONS (sizeof(definitions) / sizeof(*definitions))

static bool is_of(const struct definition *d, enum command command) {
  return (d->commands >> command) & 1;
}

/* ---- operands ---- */

static int parse_pid(struct options *o, const char *value,
                     struct config_error *reason) {
  if (parse_number(value, UINT32_MAX, &o->pid))
    return 0;
  return refuse(reason, "PID", value, "the number of a process");
}

static int parse_operand(struct options *o, size_t n, const char *value,
                         struct config_error *reason) {
  if (n == FILES_MAX)
    return config_error_set(reason, "\"%s\": expected at most %d files",
                            QUOTED(value), FILES_MAX);
  if (n >= commands[o->command].most)
    return config_error_set(reason, "\"%s\": expected only %s", QUOTED(value),
                            n > 0 ? commands[o->command].operands
                                  : "options, such as -C FILE");
  if (o->command == COMMAND_EXPLAIN && n == 1)
    return parse_pid(o, value, reason);
  if (!*value)
    return config_error_set(reason, "expected the name of a file, not \"\"");
  o->files[o->n_files++] = value;
  return 0;
}

/* ---- checks of options together ---- */

bool options_shows(const struct options *o, enum row_kind kind) {
  unsigned both = 1U << ROW_GROUP | 1U << ROW_PROCESS;

  return ((o->kinds ? o->kinds : both) >> kind) & 1;
}

/* True if a table that is shown has all n columns. */
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

static size_t count_stdin(const struct options *o) {
  size_t n = 0;

  for (size_t i = 0; i < o->n_files; i++)
    n += strcmp(o->files[i], "-") == 0;
  return n;
}

/* "explain live" reads the host, as live does: without a file. */
static int take_live(struct options *o, struct config_error *reason) {
  if (o->command != COMMAND_EXPLAIN || o->n_files == 0)
    return 0;
  if (strcmp(o->files[0], "live") == 0)
    o->n_files = 0;
  else if (o->config || o->source)
    return config_error_set(reason, "-C and -S need the word live as FILE");
  return 0;
}

static int check_together(const struct options *o,
                          struct config_error *reason) {
  if (o->watch_seconds > 0 && o->table_option)
    return config_error_set(reason, "--watch cannot be combined with --%s",
                            o->table_option);
  if (__builtin_popcount(o->kinds) > 1)
    return config_error_set(reason,
                            "-u, -m, -w, -G and --processes: expected at most "
                            "one");
  if (o->watch_seconds > 0 && o->source)
    return config_error_set(reason, "--watch cannot be combined with --source");
  if (o->command == COMMAND_EXPLAIN && o->group && o->pid != MISSING)
    return config_error_set(reason, "-g cannot be combined with a PID");
  if (options_shows(o, ROW_AREA) &&
      (o->group || o->process_filter || o->user_filter))
    return config_error_set(reason, "-w cannot be combined with -g, -P or -U");
  if (o->mapping_filter && !options_shows(o, ROW_MAPPING))
    return config_error_set(reason, "-M needs -m");
  if (!is_in_a_table(o, &o->sort, 1))
    return config_error_set(reason,
                            "-s \"%s\": expected a column of this table",
                            column_name(o->sort));
  if (!is_in_a_table(o, o->columns, o->n_columns))
    return config_error_set(reason,
                            "-c: expected columns of one table; see -c help");
  if (count_stdin(o) > 1)
    return config_error_set(reason, "\"-\": expected at most once");
  return 0;
}

/* With --since, OLD is not given, and NEW need not be. */
static int check_count(const struct options *o, size_t n,
                       struct config_error *reason) {
  if (o->has_since && n > 1)
    return config_error_set(reason, "--since: expected at most one file");
  if ((SINCE >> o->command) & 1 && o->config && !o->has_since)
    return config_error_set(reason, "-C needs --since");
  if (!o->has_since && n < commands[o->command].least)
    return config_error_set(reason, "expected %s; see --help",
                            commands[o->command].operands);
  return 0;
}

/* ---- the command line ---- */

/* getopt_long() returns OPERAND for a word that is not an option. For options
 * it returns the letter, or NUMBER and the index of the definition. */
#define OPERAND 1
#define NUMBER 256

static void list_options(enum command command, char *ret_letters,
                         struct option *ret_names) {
  /* Words are wanted where they stand, and ':' for a value that is missing. */
  char *letters = stpcpy(ret_letters, "-:");

  for (size_t i = 0; i < DEFINITIONS; i++) {
    const struct definition *d = &definitions[i];

    if (!is_of(d, command))
      continue;
    *ret_names++ = (struct option){
        .name = d->name, .has_arg = d->value != NULL, .val = NUMBER + (int)i};
    if (d->letter)
      letters += sprintf(letters, "%c%s", d->letter, d->value ? ":" : "");
  }
  *ret_names = (struct option){0};
}

static const struct definition *find(enum command command, int code) {
  size_t i = 0;

  if (code >= NUMBER)
    return &definitions[code - NUMBER];
  while (definitions[i].letter != code || !is_of(&definitions[i], command))
    i++;
  return &definitions[i];
}

/* `last` is the word that getopt_long() has looked at. */
static int refuse_option(enum command command, const char *last, bool is_known,
                         struct config_error *reason) {
  bool is_long = optopt == 0 || optopt >= NUMBER;
  char letter[2] = {(char)optopt, '\0'};
  const char *dashes = is_long ? "--" : "-";
  const char *word = QUOTED(is_long ? last + 2 : letter);

  if (is_known)
    return config_error_set(reason, "%s%s: expected %s after it", dashes, word,
                            find(command, optopt)->value);
  if (optopt >= NUMBER)
    return config_error_set(reason, "--%s: takes no value",
                            find(command, optopt)->name);
  if (command == COMMAND_TABLE)
    return config_error_set(reason,
                            "%s%s: no such option; a subcommand has to be the "
                            "first word",
                            dashes, word);
  return config_error_set(reason, "%s%s: no such option of \"%s\"", dashes,
                          word, commands[command].name);
}

static int take_word(struct options *o, const struct definition *d,
                     const char *word, struct config_error *reason) {
  const char option[] = {'-', d->letter, '\0'};

  *(const char **)(void *)((char *)o + d->field) = word;
  if (d->kind == REGEX)
    return check_filter(option, word, reason);
  return d->kind == PATH && !*word ? refuse(reason, option, word, "a path") : 0;
}

static int apply(struct options *o, const struct definition *d,
                 struct config_error *reason) {
  if (is_of(d, COMMAND_TABLE) && !is_of(d, COMMAND_CHECK))
    o->table_option = d->name;
  if (d->kind == PARSED)
    return d->parse(o, optarg, reason);
  if (d->kind == SHOWN)
    o->kinds |= (uint8_t)(1U << d->set);
  else if (d->kind == FLAG)
    ((unsigned char *)o)[d->field] = d->set;
  else
    return take_word(o, d, optarg, reason);
  return 0;
}

static int parse_all(struct options *o, int argc, char **argv, size_t *ret_n,
                     struct config_error *reason) {
  struct option names[DEFINITIONS + 1];
  char letters[2 * DEFINITIONS + 3];
  size_t n = 0;
  int rc = 0, code;

  list_options(o->command, letters, names);
  optind = opterr = 0;
  while (rc == 0 &&
         (code = getopt_long(argc, argv, letters, names, NULL)) != -1) {
    if (code == OPERAND)
      rc = parse_operand(o, n++, optarg, reason);
    else if (code == '?' || code == ':')
      rc = refuse_option(o->command, argv[optind - 1], code == ':', reason);
    else
      rc = apply(o, find(o->command, code), reason);
  }
  while (rc == 0 && optind < argc)
    rc = parse_operand(o, n++, argv[optind++], reason);
  *ret_n = n;
  return rc;
}

static enum command find_command(const char *word) {
  for (unsigned i = COMMAND_TABLE + 1; i < COMMANDS; i++)
    if (strcmp(word, commands[i].name) == 0)
      return (enum command)i;
  return COMMAND_TABLE;
}

int options_parse(int argc, char **argv, struct options *ret,
                  struct config_error *reason) {
  const char *word = argc > 1 ? argv[1] : "-";
  struct options o = {.command = find_command(word),
                      .pid = MISSING,
                      .sort = column_count(),
                      .rows_max = MISSING,
                      .width = MISSING,
                      .has_header = true};
  int is_named = o.command != COMMAND_TABLE, rc;
  size_t n = 0;

  rc = parse_all(&o, argc - is_named, argv + is_named, &n, reason);
  if (rc < 0)
    return rc;
  if (o.sort == column_count())
    o.sort = options_shows(&o, ROW_AREA) ? column_find("used", 4) : AMOUNT_PSS;
  if (!o.wants_help && !o.wants_version && !o.wants_columns) {
    rc = check_count(&o, n, reason);
    if (rc == 0)
      rc = check_together(&o, reason);
    if (rc == 0)
      rc = take_live(&o, reason);
  }
  if (rc == 0)
    *ret = o;
  return rc;
}

/* ---- help ---- */

static void print_usage(const char *title, enum command command, FILE *out) {
  const char *name = commands[command].name;
  const char *words = commands[command].operands;

  fprintf(out, "%s smaps-report %s%s[options]%s%s\n", title, name,
          *name ? " " : "", *words ? " " : "", words);
}

void options_print_help(enum command command, FILE *out) {
  print_usage("Usage:", command, out);
  for (unsigned i = 1; command == COMMAND_TABLE && i < COMMANDS; i++)
    print_usage("      ", (enum command)i, out);
  fprintf(out, "\n%s\n\n", commands[command].help);
  for (size_t i = 0; i < DEFINITIONS; i++) {
    const struct definition *o = &definitions[i];
    char letter[8] = "    ", words[40];

    if (!is_of(o, command))
      continue;
    if (o->letter)
      snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    snprintf(words, sizeof(words), "%s--%s%s%s", letter, o->name,
             o->value ? " " : "", o->value ? o->value : "");
    fprintf(out, "  %-25s  %s\n", words, o->help);
  }
}

void options_print_columns(enum command command, FILE *out) {
  static const char *const kinds[ROW_KINDS] = {"groups", "processes", "users",
                                               "mappings", "areas"};

  for (unsigned i = 0; command == COMMAND_DIFF && i < column_count(); i++)
    if (column_is_amount(i))
      fprintf(out, "%s\n", column_name(i));
  for (unsigned i = 0; command != COMMAND_DIFF && i < column_count(); i++) {
    fprintf(out, "%-18s", column_name(i));
    for (unsigned kind = 0; kind < ROW_KINDS; kind++)
      if (column_is_of(i, (enum row_kind)kind))
        fprintf(out, " %s", kinds[kind]);
    fputc('\n', out);
  }
}
