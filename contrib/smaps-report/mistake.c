#include "mistake.h"
#include "extract.h"
#include "text.h"

#include <smaps/text.h>

#include <stdlib.h>
#include <string.h>

#define OURS "smaps plugin: "

static void cut_newline(char *line) { line[strcspn(line, "\n")] = '\0'; }

static void print(const char *words, FILE *out) {
  struct style plain = {.out = out};
  struct text text = {0};

  text_add_name(&text, words, &plain);
  text_print(&text, COLOUR_NONE, &plain);
  text_done(&text);
}

/* A line of the configuration, and the mark above it. */
struct place {
  char *source; /* NULL: no mark */
  size_t line;
};

static bool parse_mark(const char *text, struct place *ret) {
  struct cursor s = cursor_begin(text, strlen(text));
  uint64_t line;

  if (!parse_word(&s, EXTRACT_MARK) || !parse_char(&s, ' ') ||
      !parse_u64(&s, &line) || !parse_char(&s, ' '))
    return false;
  free(ret->source);
  ret->source = strdup(s.at);
  ret->line = (size_t)line;
  return true;
}

/* Finds where a line comes from. */
static struct place find_place(FILE *config, uint64_t wanted) {
  struct place place = {.source = NULL};
  char *line = NULL;
  size_t size = 0;

  rewind(config);
  for (uint64_t i = 1; i < wanted && getline(&line, &size, config) > 0; i++) {
    cut_newline(line);
    if (!parse_mark(line, &place))
      place.line++;
  }
  free(line);
  return place;
}

/*
 * Parse error in file `/tmp/x/collectd.conf', line 12 near `<newline>': words
 *
 * After a newline the parser is in the next line already.
 */
static bool print_parse_error(const char *text, FILE *config, FILE *out) {
  static const char newline[] = "<newline>'";
  const char *number = strstr(text, "', line "), *near;
  struct cursor s;
  struct place place;
  char words[512];
  uint64_t line;

  if (strncmp(text, "Parse error in file ", 20) != 0 || !number)
    return false;
  number += strlen("', line ");
  s = cursor_begin(number, strlen(number));
  if (!parse_u64(&s, &line) || !parse_word(&s, " near `"))
    return false;
  near = s.at;
  if (strncmp(near, newline, strlen(newline)) == 0 && line > 1)
    line--;
  place = find_place(config, line);
  snprintf(words, sizeof(words), "%s:%zu: near `%s",
           place.source ? place.source : "?", place.line, near);
  print(words, out);
  free(place.source);
  return true;
}

static bool print_option(const char *text, FILE *out) {
  const char *ours = strstr(text, OURS);

  if (!ours || !strstr(ours, ": expected "))
    return false;
  print(ours + strlen(OURS), out);
  return true;
}

size_t mistake_print(FILE *log, FILE *config, FILE *out) {
  char *line = NULL;
  size_t size = 0, n = 0;

  while (getline(&line, &size, log) > 0) {
    cut_newline(line);
    n += print_option(line, out) || print_parse_error(line, config, out);
  }
  free(line);
  return n;
}
