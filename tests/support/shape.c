/*
 * shape - makes real processes of a known shape for the integration tests.
 *
 * The program itself is only the supervisor. It forks a root process, which
 * makes the shape of its kind, alone or with forked children. When all memory
 * is touched and everything stands, the supervisor prints
 *
 *   READY root-pid pid ... [swapped_kib=N]
 *
 * and takes commands on standard input, one a line, each answered by one line:
 *
 *   grow N   the root allocates N MiB more ("OK"); not vfork, forkexec, churn
 *   go       forkexec: the child execs now ("OK"); once
 *   count    churn: how many processes were started so far ("COUNT N")
 *   exit     ends, as do end of file and SIGTERM
 *
 * Every process gets a SIGKILL when its parent ends, so nothing survives the
 * supervisor.
 */
#include "shape.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PIDS 4096
#define MAX_NUMBER (1ul << 30)

/* ---- options ---- */

static const char usage_text[] =
    "usage: shape KIND [--option=VALUE ...]\n"
    "  --name=TEXT        comm of every process (default: shaped)\n"
    "  --name-hex=BYTES   the same as hexadecimal bytes, may be empty\n"
    "  --child-name=TEXT  comm of the children (forkexec: after the exec)\n"
    "  --mib=N            memory (default 1)\n"
    "  --children=K       how many are forked; the root is one more\n"
    "  --rewrite-mib=M    cow: what each child rewrites\n"
    "  --threads=T        threads: with the main one (default 4)\n"
    "  --argv-hex=BYTES   named: the arguments, with a 00 between each two\n"
    "  --rate=R           churn: starts per second (default 60)\n"
    "  --seconds=S        churn: for so long (default 60)\n"
    "  --life-ms=N        churn: how long each lives (default 100)\n"
    "kinds:";

__attribute__((noreturn)) static void usage(void) {
  fputs(usage_text, stderr);
  for (const struct kind *k = shape_kinds; k->name; k++)
    fprintf(stderr, " %s", k->name);
  fputs("\n", stderr);
  exit(2);
}

static const struct kind *find_kind(const char *name) {
  for (const struct kind *k = shape_kinds; k->name; k++)
    if (strcmp(k->name, name) == 0)
      return k;
  usage();
}

static unsigned number(const char *text) {
  char *end;
  unsigned long n = strtoul(text, &end, 10);

  if (end == text || *end != '\0' || n > MAX_NUMBER)
    usage();
  return (unsigned)n;
}

static void copy_name(char *ret, const char *text) {
  if (strlen(text) >= COMM_SIZE)
    usage();
  strcpy(ret, text);
}

/* What the value of an option is. */
enum form { TEXT, NAME, NAME_IN_HEX, NUMBER, MIBS };

static const struct option {
  const char *name;
  enum form form;
  size_t at; /* in struct shape */
} options[] = {
    {"name", NAME, offsetof(struct shape, name)},
    {"name-hex", NAME_IN_HEX, offsetof(struct shape, name)},
    {"child-name", NAME, offsetof(struct shape, child_name)},
    {"mib", MIBS, offsetof(struct shape, bytes)},
    {"children", NUMBER, offsetof(struct shape, children)},
    {"rewrite-mib", MIBS, offsetof(struct shape, rewrite_bytes)},
    {"threads", NUMBER, offsetof(struct shape, threads)},
    {"argv-hex", TEXT, offsetof(struct shape, argv_hex)},
    {"rate", NUMBER, offsetof(struct shape, rate)},
    {"seconds", NUMBER, offsetof(struct shape, seconds)},
    {"life-ms", NUMBER, offsetof(struct shape, life_ms)},
};

static void set(void *at, enum form form, const char *value) {
  size_t len;

  switch (form) {
  case TEXT:
    *(const char **)at = value;
    break;
  case NAME:
    copy_name(at, value);
    break;
  case NAME_IN_HEX:
    if (shape_decode_hex(value, at, COMM_SIZE, &len) < 0)
      usage();
    break;
  case NUMBER:
    *(unsigned *)at = number(value);
    break;
  case MIBS:
    *(size_t *)at = number(value) * MIB;
  }
}

/* "--name=value" */
static void set_option(struct shape *s, const char *arg) {
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    size_t len = strlen(options[i].name);

    if (strncmp(arg, "--", 2) != 0 ||
        strncmp(arg + 2, options[i].name, len) != 0 || arg[2 + len] != '=')
      continue;
    set((char *)s + options[i].at, options[i].form, arg + 2 + len + 1);
    return;
  }
  usage();
}

static void parse_options(struct shape *s, int argc, char **argv) {
  if (argc < 2)
    usage();
  s->kind = find_kind(argv[1]);
  s->children = s->kind->children;
  for (int i = 2; i < argc; i++)
    set_option(s, argv[i]);
  if (s->rewrite_bytes > s->bytes || s->rate == 0)
    usage();
}

/* ---- the root process ---- */

/* The signal mask, and the death with the parent, are the supervisor's. */
__attribute__((noreturn)) static void run_root(struct shape *s, pid_t parent) {
  sigset_t none;

  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  shape_die_with_parent(parent);
  prctl(PR_SET_NAME, s->name, 0, 0, 0);
  s->kind->run(s);
  _exit(0);
}

/* ---- the supervisor ---- */

struct supervisor {
  const struct shape *shape;
  pid_t root;
  int reports;  /* records from the processes */
  int commands; /* lines to them */
  sigset_t while_waiting;
};

static volatile sig_atomic_t is_stopped;

static void stop(int number) {
  (void)number;
  is_stopped = 1;
}

/* The signals that end us are blocked, except while we wait. */
static void block_signals(sigset_t *ret_while_waiting) {
  static const int ending[] = {SIGTERM, SIGINT, SIGHUP};
  struct sigaction action = {.sa_handler = stop};
  sigset_t blocked;

  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
    sigaddset(&blocked, ending[i]);
    sigaction(ending[i], &action, NULL);
  }
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &blocked, ret_while_waiting);
}

/* False where we have been told to end. */
static bool wait_readable(const struct supervisor *v, int fd) {
  struct pollfd p = {.fd = fd, .events = POLLIN};

  while (!is_stopped)
    if (ppoll(&p, 1, NULL, &v->while_waiting) > 0)
      return true;
  return false;
}

static void start_root(struct supervisor *v, struct shape *s) {
  pid_t parent = getpid();
  int reports[2];
  int commands[2];

  if (pipe(reports) < 0 || pipe(commands) < 0)
    shape_die("pipe");
  v->shape = s;
  v->root = fork();
  if (v->root < 0)
    shape_die("fork");
  if (v->root == 0) {
    close(reports[0]);
    close(commands[1]);
    close(STDIN_FILENO);
    s->report_fd = reports[1];
    s->command_fd = commands[0];
    run_root(s, parent);
  }
  /* Our ends are closed, so the end of the last process is an end of file. */
  close(reports[1]);
  close(commands[0]);
  v->reports = reports[0];
  v->commands = commands[1];
}

static bool next_record(const struct supervisor *v, struct record *r) {
  return wait_readable(v, v->reports) &&
         read(v->reports, r, sizeof(*r)) == sizeof(*r);
}

static bool await_event(const struct supervisor *v, enum event event) {
  struct record r;

  while (next_record(v, &r))
    if (r.event == event)
      return true;
  return false;
}

/* Waits until everything stands and says so; false where the root has died. */
static bool announce(const struct supervisor *v) {
  static pid_t pids[MAX_PIDS];
  unsigned long expected = MAX_PIDS;
  unsigned long n = 0;
  long swapped_kib = -1;
  struct record r;

  while (n < expected) {
    if (!next_record(v, &r))
      return false;
    if (r.event == EVENT_EXPECT && r.value < MAX_PIDS)
      expected = r.value;
    else if (r.event == EVENT_SWAPPED)
      swapped_kib = (long)r.value;
    else if (r.event == EVENT_READY)
      pids[n++] = r.pid;
  }
  printf("READY %d", (int)v->root);
  for (unsigned long i = 0; i < n; i++)
    if (pids[i] != v->root)
      printf(" %d", (int)pids[i]);
  if (swapped_kib >= 0)
    printf(" swapped_kib=%ld", swapped_kib);
  puts("");
  fflush(stdout);
  return true;
}

static bool pass_on(const struct supervisor *v, const char *line) {
  dprintf(v->commands, "%s\n", line);
  if (!await_event(v, EVENT_DONE))
    return false;
  /* An exec is done when what was exec'ed says so. */
  return strcmp(line, "go") != 0 || await_event(v, EVENT_READY);
}

/* False at "exit", and where nobody is left to take the command. */
static bool execute(const struct supervisor *v, const char *line) {
  const char *taken = v->shape->kind->command;
  bool is_alive = strcmp(line, "exit") != 0;

  if (!is_alive)
    return false;
  if (strcmp(line, "count") == 0 && v->shape->started) {
    printf("COUNT %lu\n", atomic_load(v->shape->started));
  } else if (taken && strncmp(line, taken, strlen(taken)) == 0) {
    is_alive = pass_on(v, line);
    puts(is_alive ? "OK" : "ERROR the shape has ended");
  } else {
    printf("ERROR %s does not take this\n", v->shape->kind->name);
  }
  fflush(stdout);
  return is_alive;
}

static void serve(const struct supervisor *v) {
  char line[64];

  while (wait_readable(v, STDIN_FILENO))
    if (!shape_read_line(STDIN_FILENO, line, sizeof(line)) || !execute(v, line))
      return;
}

/* Orphans come to us, as we asked with PR_SET_CHILD_SUBREAPER,
 * and has got its SIGKILL: nothing is left behind, not even a zombie. */
static void end_everything(const struct supervisor *v) {
  kill(v->root, SIGKILL);
  while (wait(NULL) > 0 || errno == EINTR)
    ;
}

int main(int argc, char **argv) {
  static struct shape s = {
      .name = "shaped",
      .argv_hex = "73686170652d68656c64", /* shape-held */
      .bytes = MIB,
      .threads = 4,
      .rate = 60,
      .seconds = 60,
      .report_fd = -1,
      .command_fd = -1,
  };
  const char *held = getenv(SHAPE_HELD);
  struct supervisor v;
  bool is_up;

  /* First of all: such a process may have no argv, not even argv[0]. */
  if (held)
    shape_run_held(held);
  parse_options(&s, argc, argv);
  s.started = mmap(NULL, sizeof(*s.started), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s.started == MAP_FAILED)
    shape_die("mmap");
  block_signals(&v.while_waiting);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  start_root(&v, &s);
  is_up = announce(&v);
  if (is_up)
    serve(&v);
  end_everything(&v);
  return is_up ? 0 : 1;
}
