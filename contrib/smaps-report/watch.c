/* SPDX-License-Identifier: MIT */
#include "watch.h"

#include "live.h"
#include "memory.h"
#include "watch_screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND UINT64_C(1000000000)
#define FILTER_MAX 64
#define ESCAPE 27
#define DELETE 127
#define DELETE_ALL 0x15 /* Ctrl-U */

/* The longest wait: a change of the terminal's size just before it is noticed
 * after it. */
#define WAIT_MS 1000

struct session {
  struct watch watch;
  struct watch_screen screen;
  uint64_t interval_ns;
  uint64_t next_ns; /* when the next refresh is due */
  char typed[FILTER_MAX];
  struct config_error trouble;
  bool wants_close_up; /* of the process whose mappings are shown */
  bool is_over;
  pthread_t thread;
  /* The ends of a socket: a byte from the first asks the thread for a sample,
   * one back says that it was made. Between them the screen is busy, and what
   * follows is the thread's. */
  int ends[2];
  struct probe *probe;
  uint64_t pid; /* of a close-up; MISSING: a refresh */
  bool has_document;
  struct document document;
  struct config_error reason; /* where there is no document */
};

static uint64_t now_ns(void) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

/* ---- keys ---- */

/* In the order of the columns. */
static const char sort_keys[] = "purwglcn";
_Static_assert(sizeof(sort_keys) == SORTS + 1, "a key for each column");

static void sort_by_key(struct watch *w, int key) {
  const char *found = key > 0 && key < 128 ? strchr(sort_keys, key) : NULL;

  if (found)
    watch_sort_by(w, (enum watch_sort)(found - sort_keys));
  else if (key == '<' && w->sort > 0)
    watch_sort_by(w, w->sort - 1);
  else if (key == '>' && w->sort + 1 < SORTS)
    watch_sort_by(w, w->sort + 1);
  else if (key == 'R')
    watch_reverse(w);
}

/* How many rows the key goes down; 0 of other keys. */
static long rows_of_key(const struct watch *w, int key) {
  switch (key) {
  case KEY_UP:
  case 'k':
    return -1;
  case KEY_DOWN:
  case 'j':
    return 1;
  case KEY_PPAGE:
    return -(long)watch_screen_rows();
  case KEY_NPAGE:
    return (long)watch_screen_rows();
  case KEY_HOME:
    return -(long)w->n;
  case KEY_END:
    return (long)w->n;
  default:
    return 0;
  }
}

static void freeze(struct session *s) {
  s->watch.is_frozen = !s->watch.is_frozen;
  s->next_ns = 0;
}

static void enter(struct session *s) {
  s->wants_close_up |= watch_enter(&s->watch);
}

static void begin_to_type(struct session *s) {
  snprintf(s->typed, sizeof(s->typed), "%s", watch_filter_of(&s->watch));
  s->screen.typed = s->typed;
}

static void press(struct session *s, int key) {
  long rows = rows_of_key(&s->watch, key);

  switch (key) {
  case 'q':
    s->is_over = true;
    return;
  case '?':
  case 'h':
    s->screen.has_help = true;
    return;
  case ' ':
    freeze(s);
    return;
  case '/':
    begin_to_type(s);
    return;
  case '\n':
  case '\r':
  case KEY_ENTER:
  case KEY_RIGHT:
    enter(s);
    return;
  case ESCAPE:
    if (*watch_filter_of(&s->watch))
      watch_filter(&s->watch, "");
    else
      watch_leave(&s->watch);
    return;
  case '\b':
  case DELETE:
  case KEY_BACKSPACE:
  case KEY_LEFT:
    watch_leave(&s->watch);
    return;
  case '\f':
    clearok(stdscr, TRUE);
    return;
  default:
    if (rows != 0)
      watch_move(&s->watch, rows);
    else
      sort_by_key(&s->watch, key);
  }
}

/* Text is taken by bytes: ncurses returns a character byte by byte. */
static void type(struct session *s, int key) {
  size_t len = strlen(s->typed);

  if (key == '\n' || key == '\r' || key == KEY_ENTER)
    watch_filter(&s->watch, s->typed);
  if (key == '\n' || key == '\r' || key == KEY_ENTER || key == ESCAPE) {
    s->screen.typed = NULL;
  } else if (key == '\b' || key == DELETE || key == KEY_BACKSPACE) {
    while (len > 0 && (s->typed[len - 1] & 0xc0) == 0x80)
      len--;
    s->typed[len > 0 ? len - 1 : 0] = '\0';
  } else if (key == DELETE_ALL) {
    s->typed[0] = '\0';
  } else if (key >= ' ' && key < 256 && len + 1 < sizeof(s->typed)) {
    s->typed[len] = (char)key;
    s->typed[len + 1] = '\0';
  }
}

static void handle_key(struct session *s, int key) {
  if (key == KEY_RESIZE)
    return;
  if (s->screen.has_help)
    s->screen.has_help = false;
  else if (s->screen.typed)
    type(s, key);
  else
    press(s, key);
}

static void handle_keys(struct session *s) {
  int key;

  while (!s->is_over && (key = getch()) != ERR)
    handle_key(s, key);
}

/* ---- the thread that reads ---- */

/* The screen answers while processes are read. */
static void *make_samples(void *context) {
  struct session *s = context;
  char byte;

  while (recv(s->ends[1], &byte, 1, 0) == 1) {
    int rc =
        s->pid == MISSING
            ? live_refresh(s->probe, &s->document, &s->reason)
            : live_close_up(s->probe, s->pid, NULL, &s->document, &s->reason);

    s->has_document = rc == 0;
    send(s->ends[1], &byte, 1, MSG_NOSIGNAL);
  }
  return NULL;
}

/* Signals that end the program are for the thread of the screen. */
static int start_thread(struct session *s) {
  static const int ours[] = {SIGINT,  SIGTERM,  SIGHUP,
                             SIGQUIT, SIGWINCH, SIGTSTP};
  sigset_t blocked, before;
  int rc;

  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->ends) < 0)
    return -errno;
  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
    sigaddset(&blocked, ours[i]);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  rc = pthread_create(&s->thread, NULL, make_samples, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return -rc;
}

/* Asks for the mappings that are shown, or for a refresh that is due. */
static void ask(struct session *s) {
  s->pid = watch_pid(&s->watch);
  if (s->wants_close_up && s->pid != MISSING) {
    s->wants_close_up = false;
  } else if (!s->watch.is_frozen && now_ns() >= s->next_ns) {
    s->pid = MISSING;
    s->next_ns = now_ns() + s->interval_ns;
    s->wants_close_up = true;
  } else {
    return;
  }
  s->screen.is_busy = send(s->ends[0], "", 1, MSG_NOSIGNAL) == 1;
}

static void take_sample(struct session *s) {
  struct document *d;
  char byte;

  if (recv(s->ends[0], &byte, 1, MSG_DONTWAIT) != 1)
    return;
  s->screen.is_busy = false;
  d = s->has_document ? &s->document : NULL;
  if (s->pid != MISSING) {
    watch_take_close_up(&s->watch, s->pid, d, s->reason.text);
    return;
  }
  s->trouble = s->reason;
  s->screen.trouble = d ? NULL : s->trouble.text;
  if (d)
    watch_take(&s->watch, d);
}

/* A thread that still reads is left to the end of the program. */
static void end_thread(struct session *s) {
  take_sample(s);
  if (s->screen.is_busy)
    return;
  shutdown(s->ends[0], SHUT_RDWR);
  pthread_join(s->thread, NULL);
  close(s->ends[0]);
  close(s->ends[1]);
}

/* ---- the loop ---- */

static int wait_ms(const struct session *s) {
  uint64_t now = now_ns(), left_ms;

  if (s->watch.is_frozen || s->screen.is_busy)
    return WAIT_MS;
  left_ms = s->next_ns > now ? (s->next_ns - now) / 1000000 + 1 : 0;
  return left_ms < WAIT_MS ? (int)left_ms : WAIT_MS;
}

/* Ends when the user ends it, or when the terminal is gone. */
static void loop(struct session *s) {
  struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                         {.fd = s->ends[0], .events = POLLIN}};

  while (!s->is_over) {
    take_sample(s);
    if (!s->screen.is_busy)
      ask(s);
    watch_screen_draw(&s->screen, &s->watch);
    if (poll(fds, 2, wait_ms(s)) > 0 && (fds[0].revents & ~POLLIN))
      s->is_over = true;
    handle_keys(s);
  }
}

static void begin(struct session *s, const struct options *o) {
  *s = (struct session){
      .interval_ns = (uint64_t)(o->watch_seconds * (double)NS_PER_SECOND),
      .screen.seconds = o->watch_seconds,
      .screen.style = {.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
                       .unit = UNIT_HUMAN,
                       .mem_total = MISSING}};
  watch_init(&s->watch);
}

static int run(struct session *s, struct config_error *reason) {
  int rc = watch_screen_begin(reason);

  if (rc == 0 && (rc = start_thread(s)) < 0)
    config_error_format(reason, "--watch: %s", strerror(-rc));
  if (rc < 0)
    return rc;
  loop(s);
  watch_screen_end();
  end_thread(s);
  return 0;
}

int watch_run(const struct options *o, struct config_error *reason) {
  struct session *s = memory_array(NULL, 1, sizeof(*s));
  struct probe_setup setup = {.config = o->config};
  int rc;

  begin(s, o);
  setup.interval_ns = s->interval_ns;
  rc = probe_new(&setup, &s->probe, reason);
  if (rc == 0)
    rc = run(s, reason);
  watch_done(&s->watch);
  if (s->screen.is_busy)
    return rc;
  probe_free(s->probe);
  free(s);
  return rc;
}
