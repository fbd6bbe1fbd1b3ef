/* SPDX-License-Identifier: MIT */
#include "watch_screen.h"

#include <curses.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define HEAD_LINES 3
#define FOOT_LINES 1
#define AMOUNT_WIDTH 8
#define CHANGE_WIDTH 9
#define COUNT_WIDTH 8
#define USER_WIDTH 10
#define WIDE 100 /* columns from which users and command lines are shown */
#define INDENT 1 /* before the name */
/* Below these columns the less important numbers make room for names. */
#define NARROW 70
#define NARROWEST 50

/* An error of more than this part of PSS is marked. */
#define ERROR_SHOWN 0.01

static const char *const titles[LEVELS][SORTS] = {
    {"PSS", "USS", "RSS", "SWAP", "+START", "+LAST", "PROCS", "GROUP"},
    {"PSS", "USS", "RSS", "SWAP", "+START", "+LAST", "PID", "COMMAND"},
    {"PSS", "USS", "RSS", "SWAP", "+START", "+LAST", "AREAS", "MAPPING"},
};

/* Each as wide as an amount. */
static const char limit_titles[] = "   ERROR   LIMIT  GROWTH";

static const char *const help[] = {
    "Up Down PgUp PgDn Home End   choose a row (also k and j)",
    "Enter, Right                 its processes; the mappings of a process",
    "Esc, Backspace, Left         back; Esc first shows all names again",
    "< >                          sort by the column to the left, to the right",
    "p u r w                      sort by PSS, USS, RSS, swap",
    "g l                          sort by growth: +START, +LAST",
    "c n                          sort by the number, by the name",
    "R                            reverse the order",
    "/                            show names with a text; Ctrl-U deletes it",
    "space                        freeze, and go on",
    "q                            end",
    "",
    "+START  change of PSS since the row was first seen",
    "+LAST   change of PSS since the last refresh",
    ">       the column that the rows are sorted by",
    "ERROR   how far PSS may be off",
    "LIMIT   of the control group; GROWTH: in a second",
    "~       this PSS is estimated, and may be off by more than 1 %",
    "-       unknown: processes of other users need root",
    "",
    "Any key goes back.",
};

size_t watch_screen_rows(void) {
  return LINES > HEAD_LINES + FOOT_LINES
             ? (size_t)(LINES - HEAD_LINES - FOOT_LINES)
             : 0;
}

/* ---- texts ---- */

/* Puts the text at the right end of a column. */
static void add_right(struct text *line, struct text *field, size_t width) {
  text_pad(line, field->width < width ? width - field->width : 0);
  text_append(line, field);
  text_clear(field);
}

static bool is_shown(enum watch_sort column) {
  if (column == SORT_USS || column == SORT_RSS || column == SORT_LAST)
    return COLS >= NARROW;
  return COLS >= NARROWEST || (column != SORT_SWAP && column != SORT_START);
}

static void add_amounts(struct text *line, const struct watch_row *row,
                        const struct style *s, struct text *field) {
  for (unsigned i = 0; i <= SORT_SWAP; i++) {
    if (!is_shown((enum watch_sort)i))
      continue;
    text_add_bytes(field, row->amounts[i], s);
    if (i == SORT_PSS && row->pss_error != MISSING &&
        row->amounts[i] != MISSING &&
        (double)row->pss_error > ERROR_SHOWN * (double)row->amounts[i])
      text_add(field, "~");
    add_right(line, field, AMOUNT_WIDTH);
  }
}

static void add_change(struct text *line, double change, const struct style *s,
                       struct text *field) {
  uint64_t bytes = isnan(change) ? MISSING : (uint64_t)fabs(change);

  text_add_change(field, change < 0, bytes, s);
  add_right(line, field, CHANGE_WIDTH);
}

static bool has_users(const struct watch *w) {
  return w->level == LEVEL_PROCESSES && COLS >= WIDE;
}

static void add_user(struct text *line, const char *user, const struct style *s,
                     struct text *field) {
  text_add_name(field, user ? user : "-", s);
  text_cut(field, USER_WIDTH - 1);
  text_pad(line, 1);
  text_append(line, field);
  text_pad(line, USER_WIDTH - 1 - field->width);
  text_clear(field);
}

/* What groups have where processes have a user and a command line. */
static bool has_limits(const struct watch *w) {
  return w->level == LEVEL_GROUPS && COLS >= WIDE;
}

static void add_limits(struct text *line, const struct watch_row *row,
                       const struct style *s, struct text *field) {
  const uint64_t amounts[] = {row->pss_error, row->group->cgroup_limit,
                              row->group->growth};

  for (size_t i = 0; i < sizeof(amounts) / sizeof(*amounts); i++) {
    text_add_bytes(field, amounts[i], s);
    add_right(line, field, AMOUNT_WIDTH);
  }
}

/* The command line, or comm if there is little room. */
static const char *name_of(const struct watch_row *row) {
  if (row->process && row->process->comm && COLS < WIDE)
    return row->process->comm;
  return row->name ? row->name : "[rest]";
}

static void add_row(struct text *line, const struct watch *w,
                    const struct watch_row *row, const struct style *s) {
  struct text field = {.bytes = NULL};
  size_t left;

  add_amounts(line, row, s, &field);
  if (is_shown(SORT_START))
    add_change(line, row->start, s, &field);
  if (is_shown(SORT_LAST))
    add_change(line, row->last, s, &field);
  if (row->count == MISSING)
    text_add(&field, "-");
  else
    text_addf(&field, "%" PRIu64, row->count);
  add_right(line, &field, COUNT_WIDTH);
  if (has_limits(w))
    add_limits(line, row, s, &field);
  if (has_users(w))
    add_user(line, row->process->user, s, &field);
  text_pad(line, INDENT);
  if (row->mapping && mapping_rights(row->mapping)) {
    text_add_name(&field, mapping_rights(row->mapping), s);
    text_add(&field, " ");
  }
  text_add_name(&field, name_of(row), s);
  left = (size_t)COLS > line->width ? (size_t)COLS - line->width : 0;
  text_cut_middle(&field, left, s);
  text_append(line, &field);
  text_done(&field);
}

/* Draws the line and clears it; to the end of the screen's line if it is
 * selected. */
static void put(int y, struct text *line, chtype attributes) {
  text_cut(line, (size_t)COLS);
  if (attributes & A_REVERSE)
    text_pad(line, (size_t)COLS - line->width);
  attrset((int)attributes);
  mvaddstr(y, 0, line->bytes ? line->bytes : "");
  attrset(A_NORMAL);
  text_clear(line);
}

/* ---- the head ---- */

static uint64_t count_read(const struct document *d) {
  uint64_t n = 0;

  for (size_t i = 0; i < d->n_processes; i++)
    n += process_is_from(&d->processes[i], "read");
  return n;
}

static void add_time(struct text *line, double time) {
  time_t t = (time_t)time;
  struct tm local;
  char words[32];

  if (isnan(time) || !localtime_r(&t, &local) ||
      strftime(words, sizeof(words), "%H:%M:%S", &local) == 0)
    return;
  text_addf(line, "  %s", words);
}

static void add_host(struct text *line, const struct watch_screen *s,
                     const struct watch *w) {
  const struct document *d = &w->document;

  if (d->host)
    text_add_name(line, d->host, &s->style);
  add_time(line, d->time);
  text_addf(line, "  every %g s  memory ", s->seconds);
  text_add_bytes(line, d->mem_total, &s->style);
  text_add(line, ", available ");
  text_add_bytes(line, d->mem_available, &s->style);
  text_addf(line, "  read %" PRIu64 " of %zu", count_read(d), d->n_processes);
}

static void draw_host(const struct watch_screen *s, const struct watch *w,
                      struct text *line) {
  if (w->has_document)
    add_host(line, s, w);
  else
    text_add(line, s->trouble ? "" : "Reading the processes ...");
  if (s->trouble) {
    text_add(line, "  ");
    text_add_name(line, s->trouble, &s->style);
  }
  put(0, line, A_BOLD);
}

static const char *state_of(const struct watch_screen *s,
                            const struct watch *w) {
  if (w->is_frozen)
    return "  FROZEN";
  return s->is_busy && w->level == LEVEL_MAPPINGS && !w->has_close_up
             ? "  reading ..."
             : "";
}

/* Each process counts once, however many groups it is in. */
static void add_total(struct text *line, const struct watch *w,
                      const struct style *s) {
  uint64_t pss = 0, error = 0;
  bool is_least = false;

  for (size_t i = 0; i < w->document.n_processes; i++) {
    const struct process *p = &w->document.processes[i];
    uint64_t own = amounts_get(&p->amounts, AMOUNT_PSS);

    if (p->n_groups == 0)
      continue;
    is_least |= own == MISSING;
    pss += amount_or_0(own);
    error += amount_or_0(p->pss_error);
  }
  text_add(line, is_least ? "  total at least " : "  total ");
  text_add_bytes(line, pss, s);
  text_add_error(line, error, s);
}

static void draw_path(const struct watch_screen *s, const struct watch *w,
                      struct text *line) {
  text_add(line, "groups");
  if (w->level >= LEVEL_PROCESSES) {
    text_add(line, " > ");
    text_add_name(line, w->group, &s->style);
  }
  if (w->level == LEVEL_MAPPINGS) {
    text_addf(line, " > %" PRIu64 " ", w->pid);
    text_add_name(line, w->process_name, &s->style);
  }
  text_addf(line, "  %zu", w->n);
  if (w->n < w->n_all)
    text_addf(line, " of %zu", w->n_all);
  if (*watch_filter_of(w)) {
    text_add(line, "  /");
    text_add_name(line, watch_filter_of(w), &s->style);
  }
  if (has_limits(w) && w->has_document)
    add_total(line, w, &s->style);
  text_add(line, state_of(s, w));
  put(1, line, A_NORMAL);
}

static int width_of(enum watch_sort column) {
  if (column <= SORT_SWAP)
    return AMOUNT_WIDTH;
  return column == SORT_COUNT ? COUNT_WIDTH : CHANGE_WIDTH;
}

/* The column that the rows are sorted by is marked, bold and underlined. */
static void draw_titles(const struct watch *w) {
  int x = 0;

  for (unsigned i = 0; i < SORTS; i++) {
    const char *title = titles[w->level][i];
    int width = width_of((enum watch_sort)i);

    if (!is_shown((enum watch_sort)i))
      continue;
    if (i == SORT_NAME && has_users(w)) {
      mvaddnstr(2, x + 1, "USER", COLS > x + 1 ? COLS - x - 1 : 0);
      x += USER_WIDTH;
    }
    if (i == SORT_NAME && has_limits(w)) {
      mvaddnstr(2, x, limit_titles, COLS - x);
      x += (int)strlen(limit_titles);
    }
    attrset(i == w->sort ? (int)(A_BOLD | A_UNDERLINE) : (int)A_DIM);
    x += i == SORT_NAME ? INDENT : width - (int)strlen(title);
    if (i == w->sort && x <= COLS)
      mvaddch(2, x - 1, '>');
    if (x < COLS)
      mvaddnstr(2, x, title, COLS - x);
    x += (int)strlen(title);
    attrset(A_NORMAL);
  }
}

/* ---- rows ---- */

static chtype attributes_of(const struct watch_row *row, bool is_selected) {
  if (is_selected)
    return A_REVERSE;
  if (isnan(row->last) || row->last == 0)
    return A_NORMAL;
  return (chtype)COLOR_PAIR(row->last < 0 ? 2 : 1);
}

static void draw_rows(const struct watch_screen *s, struct watch *w,
                      struct text *line) {
  size_t shown = watch_screen_rows();
  const struct watch_view *v = &w->views[w->level];

  watch_scroll(w, shown);
  for (size_t i = 0; i < shown && v->top + i < w->n; i++) {
    const struct watch_row *row = &w->rows[v->top + i];

    add_row(line, w, row, &s->style);
    put(HEAD_LINES + (int)i, line, attributes_of(row, v->top + i == v->at));
  }
  if (w->level == LEVEL_MAPPINGS && w->trouble) {
    text_add_name(line, w->trouble, &s->style);
    put(HEAD_LINES, line, A_BOLD);
  }
}

static void draw_foot(const struct watch_screen *s, struct text *line) {
  if (s->typed) {
    text_add(line, "show names with: ");
    text_add_name(line, s->typed, &s->style);
    text_add(line, "_");
  } else {
    text_add(line, "Enter: in  Esc: back  < >: sort  space: freeze  /: filter  "
                   "?: help  q: end");
  }
  if (LINES > 0)
    put(LINES - 1, line, s->typed ? A_BOLD : A_DIM);
}

static void draw_help(struct text *line) {
  for (size_t i = 0; i < sizeof(help) / sizeof(*help); i++) {
    text_add(line, help[i]);
    put((int)i, line, A_NORMAL);
  }
}

void watch_screen_draw(const struct watch_screen *s, struct watch *w) {
  struct text line = {.bytes = NULL};

  erase();
  if (s->has_help) {
    draw_help(&line);
  } else {
    draw_host(s, w, &line);
    draw_path(s, w, &line);
    draw_titles(w);
    draw_rows(s, w, &line);
    draw_foot(s, &line);
  }
  refresh();
  text_done(&line);
}

/* ---- the terminal ---- */

/* Esc is a key of its own if nothing follows for so many milliseconds: over a
 * slow line the rest of another key's sequence arrives within that time. */
#define ESCAPE_DELAY_MS 100

static struct {
  SCREEN *screen; /* NULL: not begun */
  struct termios before;
  char leave[256]; /* the sequence that leaves the screen, for a signal */
} terminal;

/* Functions of ncurses may not be called here: a function of its own may have
 * been interrupted. */
static void restore(void) {
  ssize_t ignored = write(STDOUT_FILENO, terminal.leave,
                          strlen(terminal.leave)); // NOLINT

  (void)ignored;
  tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
}

/* In the background the terminal is the shell's, and setting it would stop the
 * program. The foreground is unknown (-1) if the terminal is not its own. */
static void restore_and_die(int number) {
  pid_t foreground = tcgetpgrp(STDIN_FILENO);

  if (foreground < 0 || foreground == getpgrp())
    restore();
  /* SA_RESETHAND: now it has its usual effect. */
  raise(number);
}

static void handle_signals(void) {
  static const int ending[] = {
      SIGINT,  SIGTERM, SIGHUP,    SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM,
      SIGPIPE, SIGPROF, SIGPOLL,   SIGPWR,  SIGSEGV, SIGBUS,  SIGFPE,
      SIGILL,  SIGABRT, SIGVTALRM, SIGTRAP, SIGSYS,  SIGXCPU, SIGXFSZ};
  struct sigaction die = {.sa_handler = restore_and_die,
                          .sa_flags = (int)SA_RESETHAND};

  for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
    sigaction(ending[i], &die, NULL);
}

static const char *capability(const char *name) {
  const char *text = tigetstr(name);

  return text && text != (const char *)-1 ? text : "";
}

static void set_up(void) {
  const char *no_color = getenv("NO_COLOR");

  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(ESCAPE_DELAY_MS);
  curs_set(0);
  if (has_colors() && !(no_color && *no_color)) {
    start_color();
    use_default_colors();
    init_pair(1, COLOR_RED, -1);
    init_pair(2, COLOR_GREEN, -1);
  }
}

int watch_screen_begin(struct config_error *reason) {
  const char *term = getenv("TERM");

  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
    return config_error_set(reason, "--watch: expected a terminal as standard "
                                    "input and output");
  tcgetattr(STDIN_FILENO, &terminal.before);
  /* Their values would not follow the terminal's size. */
  unsetenv("COLUMNS");
  unsetenv("LINES");
  terminal.screen = newterm(NULL, stdout, stdin);
  if (!terminal.screen || !*capability("cup")) {
    /* Not by endwin(), which would begin a line. */
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
    return config_error_set(
        reason,
        "--watch: TERM \"%s\": expected a terminal that can move its cursor",
        QUOTED(term ? term : ""));
  }
  /* Delays ($<5>) are for terminals of long ago. */
  snprintf(terminal.leave, sizeof(terminal.leave), "%s%s%s%s\n",
           capability("sgr0"), capability("cnorm"), capability("rmkx"),
           capability("rmcup"));
  atexit(watch_screen_end);
  handle_signals();
  set_up();
  return 0;
}

void watch_screen_end(void) {
  if (!terminal.screen)
    return;
  endwin();
  delscreen(terminal.screen);
  terminal.screen = NULL;
}
