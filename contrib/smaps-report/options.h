/* SPDX-License-Identifier: MIT */
/* The command line. */
#ifndef REPORT_OPTIONS_H
#define REPORT_OPTIONS_H

#include "column.h"
#include "table.h"
#include "text.h"

#include <smaps/config_error.h>

#include <time.h>

/* Documents of as many hosts can be shown together. */
#define FILES_MAX 256

enum command {
  COMMAND_TABLE,
  COMMAND_EXPLAIN,
  COMMAND_DIFF,
  COMMAND_FOLDED,
  COMMAND_HTML,
  COMMAND_LIVE,
  COMMAND_CHECK,
  COMMANDS
};

/* --fail-over: the allowed growth of a group. */
struct limit {
  bool is_set;
  bool is_percent;
  double value; /* percent or bytes */
  const char *text;
};

struct options {
  enum command command;
  bool wants_help;
  bool wants_version;
  bool wants_columns; /* -c help */
  const char *files[FILES_MAX];
  size_t n_files;
  uint64_t pid; /* MISSING: none is given */
  unsigned sort;
  bool is_reversed;
  const char *group;          /* NULL: all; of tables a regular expression */
  const char *process_filter; /* these three: NULL or a regular expression */
  const char *user_filter;
  const char *mapping_filter;
  uint8_t kinds; /* bit per enum row_kind; 0: groups and processes */
  uint8_t unit;  /* enum unit */
  unsigned columns[TABLE_COLUMNS_MAX];
  size_t n_columns; /* 0: the default columns of the table */
  bool has_header;
  bool is_json;
  bool has_total;
  uint64_t rows_max; /* MISSING: all */
  uint64_t width;    /* of lines; MISSING: the terminal's */
  struct limit limit;
  bool has_since; /* --since: OLD is the state of StateHistory at that time */
  time_t since;
  const char *source;       /* -S; NULL: /proc */
  const char *config;       /* NULL if not given */
  const char *table_option; /* the last that was given of the tables' */
  double watch_seconds;     /* between refreshes; 0: no --watch */
};

/*
 * Returns 0, or -EINVAL with the option, its value and the expected value in
 * *reason. *ret points into argv. With wants_help, wants_version or
 * wants_columns nothing else is checked.
 */
int options_parse(int argc, char **argv, struct options *ret,
                  struct config_error *reason);

/* True if the options ask for rows of this kind. */
bool options_shows(const struct options *o, enum row_kind kind);

/* Prints --help for a command. */
void options_print_help(enum command command, FILE *out);
/* Prints -c help for a command. */
void options_print_columns(enum command command, FILE *out);

#endif
