#include "terminal.h"

#include "text.h"

#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

/* Esc is a key of its own if nothing follows for so many milliseconds: over a
 * slow line the rest of another key's sequence arrives within that time. */
#define ESCAPE_DELAY_MS 100

static struct {
  SCREEN *screen; /* NULL: not begun */
  struct termios before;
  char leave[256]; /* the sequence that leaves the screen, for a signal */
} terminal;

/* ---- signals ---- */

/* Functions of ncurses may not be called here: a function of its own may have
 * been interrupted. */
static void restore_and_die(int number) {
  ssize_t ignored = write(STDOUT_FILENO, terminal.leave,
                          strlen(terminal.leave)); // NOLINT

  (void)ignored;
  tcsetattr(STDIN_FILENO, TCSANOW, &terminal.before);
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

/* ---- begin and end ---- */

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

int terminal_begin(struct config_error *reason) {
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
  atexit(terminal_end);
  handle_signals();
  set_up();
  return 0;
}

void terminal_end(void) {
  if (!terminal.screen)
    return;
  endwin();
  delscreen(terminal.screen);
  terminal.screen = NULL;
}
