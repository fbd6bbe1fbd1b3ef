/* SPDX-License-Identifier: MIT */
/* Tables, explanations, differences and stacks from the snapshots of the smaps
 * plugin (smaps-snapshot(5)). contrib/HACKING lists its modules. */
#include "diff.h"
#include "explain.h"
#include "folded.h"
#include "live.h"
#include "load.h"
#include "memory.h"
#include "messages.h"
#include "page_data.h"
#include "probe.h"
#include "since.h"
#include "view.h"
#include "watch.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FAILED 2
#define HAS_MISTAKES 1

static int fail(const char *file, const char *why) {
  fflush(stdout);
  if (file)
    fprintf(stderr, "smaps-report: %s: %s\n", QUOTED(file), why);
  else
    fprintf(stderr, "smaps-report: %s\n", why);
  return FAILED;
}

/* ---- the style of the output ---- */

/* 0 if the output is not a terminal and no width was asked for. */
static size_t find_width(const struct options *o) {
  const char *columns = getenv("COLUMNS");
  struct cursor s =
      cursor_begin(columns ? columns : "", columns ? strlen(columns) : 0);
  struct winsize size;
  uint32_t width;

  if (o->width != MISSING)
    return (size_t)o->width;
  if (parse_u32(&s, &width) && cursor_is_done(&s) && width > 0)
    return width;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return isatty(STDOUT_FILENO) ? 80 : 0;
}

static bool wants_colour(void) {
  const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

  return !(no && *no) && term && *term && strcmp(term, "dumb") != 0;
}

static struct style make_style(const struct options *o) {
  bool is_terminal = isatty(STDOUT_FILENO);

  return (struct style){
      .out = stdout,
      .width = find_width(o),
      .has_colour = is_terminal && wants_colour(),
      .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
      .has_header = o->has_header,
      .unit = o->command == COMMAND_EXPLAIN ? UNIT_HUMAN : o->unit,
  };
}

/* ---- documents ---- */

static int load_file(const char *path, struct document *ret) {
  struct config_error reason;

  if (load_document_file(path, ret, &reason) == 0)
    return 0;
  return fail(strcmp(path, "-") == 0 ? "standard input" : path, reason.text);
}

static int load_live(const struct options *o, struct document *ret) {
  bool is_check = o->command == COMMAND_CHECK;
  struct config_error reason;
  int rc = live_load(o, ret, &reason);

  if (rc)
    messages_print(stderr);
  if (rc == PROBE_MISTAKES && is_check)
    return HAS_MISTAKES;
  return rc ? fail(is_check ? "check" : "live", reason.text) : 0;
}

static int load_all(const struct options *o, struct document *ret) {
  int status = o->n_files == 0 ? load_live(o, ret) : 0;

  for (size_t i = 0; status == 0 && i < o->n_files; i++)
    status = load_file(o->files[i], &ret[i]);
  return status;
}

/* ---- commands ---- */

static void write_folded(const struct document *d, const char *file) {
  size_t left_out = folded_write(d, stdout);
  char why[80];

  output_finish(stdout);
  snprintf(why, sizeof(why), "%zu processes with unknown PSS are left out",
           left_out);
  if (left_out > 0)
    fail(file, why);
}

/* The file that has the mistake. */
static const char *culprit(const struct options *o) {
  if (o->n_files == 0)
    return "live";
  if (o->command == COMMAND_DIFF)
    return o->files[1];
  return o->n_files == 1 ? o->files[0] : NULL;
}

static int show(const struct options *o, struct document *const *d, size_t n) {
  struct style style = make_style(o);
  struct config_error reason;
  int rc = 0;

  for (size_t i = 0; i < n; i++)
    style.mem_total = amount_add(style.mem_total, d[i]->mem_total);
  if (o->command == COMMAND_FOLDED)
    write_folded(d[0], o->files[0]);
  else if (o->command == COMMAND_HTML)
    page_write(d[0], n > 1 ? d[1] : NULL, stdout);
  else if (o->command == COMMAND_CHECK)
    explain_rules(d[0], true, &style);
  else if (o->command == COMMAND_EXPLAIN)
    rc = explain_print(d[0], o, &style, &reason);
  else if (o->command == COMMAND_DIFF)
    rc = diff_print(d[0], d[1], o, &style, &reason);
  else
    rc = view_print(d, n, o, &style, &reason);
  return rc < 0 ? fail(culprit(o), reason.text) : rc;
}

static int run_on_documents(const struct options *o) {
  size_t n = o->n_files > 0 ? o->n_files : 1;
  struct document *documents = memory_check(calloc(n, sizeof(*documents)));
  struct document *pointers[FILES_MAX] = {NULL};
  int status;

  for (size_t i = 0; i < n; i++)
    pointers[i] = &documents[i];
  status = load_all(o, documents);
  if (status == 0)
    status = show(o, pointers, n);
  for (size_t i = 0; i < n; i++)
    document_done(&documents[i]);
  free(documents);
  return status;
}

/* As if both files were given: html takes the newer one first. */
static int run_since(const struct options *o) {
  bool is_html = o->command == COMMAND_HTML;
  const char *name = is_html ? "html" : "diff";
  struct options pair = *o;
  struct probe_places places;
  struct config_error reason;
  const char *new;
  char *old;
  int rc = probe_find_places(o->config, &places, &reason);

  messages_print(stderr);
  if (rc)
    return fail(name, reason.text);
  new = o->n_files > 0 ? o->files[0] : places.state_file;
  old = since_find(places.state_history, o->since, &reason);
  pair.n_files = 2;
  pair.files[!is_html] = new;
  pair.files[is_html] = old;
  if (!new)
    rc = fail(name, "StateFile is not set: expected NEW");
  else if (!old)
    rc = fail(places.state_history, reason.text);
  else
    rc = run_on_documents(&pair);
  free(old);
  free(places.state_file);
  free(places.state_history);
  return rc;
}

static int run_watch(const struct options *o) {
  struct config_error reason;
  int rc = watch_run(o, &reason);

  messages_print(stderr);
  return rc ? fail("live", reason.text) : 0;
}

static int run(const struct options *o) {
  if (o->wants_help)
    options_print_help(o->command, stdout);
  else if (o->wants_version)
    puts("smaps-report " SMAPS_VERSION);
  else if (o->wants_columns)
    options_print_columns(o->command, stdout);
  else if (o->has_since)
    return run_since(o);
  else
    return o->watch_seconds > 0 ? run_watch(o) : run_on_documents(o);
  return 0;
}

/* A closed standard stream stays unusable: no other file gets its number. */
static void reserve_streams(void) {
  int fd;

  do
    fd = open("/", O_PATH);
  while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0)
    close(fd);
}

int main(int argc, char **argv) {
  struct options options;
  struct config_error reason;
  int status;

  reserve_streams();
  setlocale(LC_CTYPE, "");
  if (options_parse(argc, argv, &options, &reason) < 0)
    return fail(NULL, reason.text);
  status = run(&options);
  output_finish(stdout);
  messages_print(stderr);
  return status;
}
