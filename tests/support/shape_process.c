/* The parts of the processes of "shape": memory, forks, execs. */
#include "shape.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MAX_ARG 100000 /* the kernel takes strings of up to 128 KiB */

void shape_die(const char *what) {
  fprintf(stderr, "shape: %s: %s\n", what, strerror(errno));
  _exit(1);
}

void shape_report(const struct shape *s, enum event event,
                  unsigned long value) {
  struct record r = {.event = event, .pid = getpid(), .value = value};

  /* Below PIPE_BUF, so records of several processes do not mix. */
  if (s->report_fd >= 0 && write(s->report_fd, &r, sizeof(r)) < 0)
    shape_die("report");
}

int shape_decode_hex(const char *hex, char *ret, size_t size, size_t *ret_len) {
  size_t n = strlen(hex) / 2;

  if (strlen(hex) % 2 != 0 || n >= size)
    return -1;
  for (size_t i = 0; i < n; i++) {
    char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    char *end;

    ret[i] = (char)strtoul(pair, &end, 16);
    if (*end != '\0')
      return -1;
  }
  ret[n] = '\0';
  *ret_len = n;
  return 0;
}

void shape_sleep_ms(unsigned ms) {
  struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

  nanosleep(&t, NULL);
}

/* ---- memory ---- */

char *shape_map(size_t bytes, int flags, int fd) {
  int protection = PROT_READ | (fd < 0 ? PROT_WRITE : 0);
  char *p = mmap(NULL, bytes, protection, flags, fd, 0);

  if (p == MAP_FAILED)
    shape_die("mmap");
  return p;
}

char *shape_map_small(size_t bytes, int flags) {
  char *p = shape_map(bytes, flags | MAP_ANONYMOUS, -1);

  /* Fails where the kernel has no huge pages, which is as good. */
  madvise(p, bytes, MADV_NOHUGEPAGE);
  return p;
}

static size_t page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void shape_write(char *p, size_t bytes) {
  uint64_t stamp = (uint64_t)getpid() << 40;

  for (size_t at = 0; at < bytes; at += page_size()) {
    stamp++;
    memcpy(p + at, &stamp, sizeof(stamp));
  }
}

void shape_read(const char *p, size_t bytes) {
  for (size_t at = 0; at < bytes; at += page_size())
    (void)*(const volatile char *)(p + at);
}

char *shape_new_private(size_t bytes) {
  char *p;

  if (bytes == 0)
    return NULL;
  p = shape_map_small(bytes, MAP_PRIVATE);
  shape_write(p, bytes);
  return p;
}

/* ---- processes ---- */

void shape_die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent)
    _exit(0);
}

void shape_begin_child(const struct shape *s, pid_t parent) {
  shape_die_with_parent(parent);
  if (s->child_name[0] != '\0')
    prctl(PR_SET_NAME, s->child_name, 0, 0, 0);
}

pid_t shape_fork(const struct shape *s) {
  pid_t parent = getpid();
  pid_t pid = fork();

  if (pid < 0)
    shape_die("fork");
  if (pid == 0)
    shape_begin_child(s, parent);
  return pid;
}

void shape_fork_children(struct shape *s, char *memory,
                         void (*body)(const struct shape *s, char *memory)) {
  for (unsigned i = 0; i < s->children; i++) {
    if (shape_fork(s) != 0)
      continue;
    body(s, memory);
    shape_report(s, EVENT_READY, 0);
    shape_hold();
  }
}

void shape_hold(void) {
  for (;;)
    pause();
}

/* Byte by byte: what follows the line may be for another process. */
bool shape_read_line(int fd, char *line, size_t size) {
  size_t len = 0;
  char c = '\0';

  while (len + 1 < size && read(fd, &c, 1) == 1 && c != '\n')
    line[len++] = c;
  line[len] = '\0';
  return c == '\n';
}

void shape_stand(const struct shape *s) {
  char line[64];

  shape_report(s, EVENT_EXPECT, s->children + 1);
  shape_report(s, EVENT_READY, 0);
  while (shape_read_line(s->command_fd, line, sizeof(line))) {
    if (strncmp(line, "grow ", 5) == 0)
      shape_new_private(strtoul(line + 5, NULL, 10) * MIB);
    shape_report(s, EVENT_DONE, 0);
  }
  shape_hold();
}

/* ---- exec ---- */

/* The path is resolved first: an exec of /proc/self/exe would be called "exe"
 * until the process has set its name. */
const char *shape_own_path(void) {
  static char path[4096];
  ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

  if (len < 0)
    shape_die("readlink /proc/self/exe");
  path[len] = '\0';
  return path;
}

void shape_copy_program(const char *path) {
  int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
  char chunk[65536];
  ssize_t n;

  if (in < 0 || out < 0)
    shape_die(path);
  while ((n = read(in, chunk, sizeof(chunk))) > 0)
    if (write(out, chunk, (size_t)n) != n)
      shape_die(path);
  close(in);
  if (n < 0 || close(out) < 0)
    shape_die(path);
}

/* Memory for an argv and its strings, never freed: an exec follows. */
static void *allocate(size_t n, size_t size) {
  void *p = calloc(n, size);

  if (!p)
    shape_die("calloc");
  return p;
}

/* Strings given as bytes, with a NUL between each two. */
static char **argv_of_hex(const char *hex) {
  size_t size = strlen(hex) / 2 + 1;
  char *bytes = allocate(size, 1);
  char **argv = allocate(size + 1, sizeof(*argv));
  size_t n = 0;
  size_t len = 0;

  if (shape_decode_hex(hex, bytes, size, &len) < 0)
    shape_die("--argv-hex");
  for (size_t at = 0; at <= len; at += strlen(bytes + at) + 1)
    argv[n++] = bytes + at;
  return argv;
}

/* A command line of that many bytes, in as few strings as can be. */
static char **argv_of_length(size_t length) {
  char *bytes = allocate(length + 1, 1);
  char **argv = allocate(length / MAX_ARG + 2, sizeof(*argv));
  size_t n = 0;

  memset(bytes, 'x', length);
  for (size_t at = 0; at < length; at += MAX_ARG) {
    if (at > 0)
      bytes[at - 1] = '\0';
    argv[n++] = bytes + at;
  }
  return argv;
}

static char **make_argv(const struct shape *s) {
  static char own[] = "shape-held";
  char **argv;

  if (s->argv_hex)
    return argv_of_hex(s->argv_hex);
  if (s->argv_bytes > 0)
    return argv_of_length(s->argv_bytes);
  argv = allocate(2, sizeof(*argv));
  if (!s->argv || strcmp(s->argv, "empty") != 0)
    argv[0] = own;
  return argv;
}

/* Arguments may take a quarter of what the stack may. */
static void widen_stack(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_STACK, &limit) < 0)
    shape_die("getrlimit");
  limit.rlim_cur = limit.rlim_max < 64 * MIB ? limit.rlim_max : 64 * MIB;
  if (setrlimit(RLIMIT_STACK, &limit) < 0)
    shape_die("setrlimit");
}

void shape_exec(const struct shape *s, const char *path, const char *name) {
  char hex[2 * COMM_SIZE] = "";
  char spec[256];
  char *env[] = {spec, NULL};

  for (size_t i = 0; name[i] != '\0'; i++)
    snprintf(hex + 2 * i, 3, "%02x", (unsigned)(unsigned char)name[i]);
  snprintf(spec, sizeof(spec), SHAPE_HELD "=%d %d %zu %u %d %s", s->report_fd,
           s->command_fd, s->bytes, s->life_ms,
           s->argv && strcmp(s->argv, "none") == 0, hex);
  if (s->argv_bytes > 0)
    widen_stack();
  execve(path, make_argv(s), env);
  shape_die(path);
}

/* A field of /proc/self/stat, from the fourth on, as a number. */
static unsigned long read_stat_field(int wanted) {
  char text[2048];
  FILE *f = fopen("/proc/self/stat", "r");
  size_t len = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
  char *at;

  if (f)
    fclose(f);
  text[len] = '\0';
  at = strrchr(text, ')');
  for (int field = 2; at && field < wanted; field++)
    at = strchr(at + 1, ' ');
  return at ? strtoul(at, NULL, 10) : 0;
}

/* A command line of no bytes at all, as some daemons leave it. To set its end
 * alone needs a capability; to set the whole map, all else as it was, does
 * not. Needs CONFIG_CHECKPOINT_RESTORE. */
static void clear_command_line(void) {
  struct prctl_mm_map map = {
      .start_code = read_stat_field(26),
      .end_code = read_stat_field(27),
      .start_stack = read_stat_field(28),
      .start_data = read_stat_field(45),
      .end_data = read_stat_field(46),
      .start_brk = read_stat_field(47),
      .brk = (uintptr_t)sbrk(0),
      .arg_start = read_stat_field(48),
      .arg_end = read_stat_field(48),
      .env_start = read_stat_field(50),
      .env_end = read_stat_field(51),
      .exe_fd = UINT32_MAX,
  };

  if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0) < 0)
    shape_die("PR_SET_MM_MAP");
}

/* Lives for ever, or for its time if it has one. */
void shape_run_held(const char *spec) {
  struct shape s = {.report_fd = -1};
  char hex[2 * COMM_SIZE] = "";
  size_t len;
  int has_no_argv;

  if (sscanf(spec, "%d %d %zu %u %d %31s", &s.report_fd, &s.command_fd,
             &s.bytes, &s.life_ms, &has_no_argv, hex) < 5 ||
      shape_decode_hex(hex, s.name, sizeof(s.name), &len) < 0)
    _exit(2);
  prctl(PR_SET_NAME, s.name, 0, 0, 0);
  if (has_no_argv)
    clear_command_line();
  shape_new_private(s.bytes);
  if (s.life_ms == 0)
    shape_stand(&s);
  shape_sleep_ms(s.life_ms);
  _exit(0);
}
