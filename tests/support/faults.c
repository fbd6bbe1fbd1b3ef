/* SPDX-License-Identifier: MIT */
#include "faults.h"

#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <daemon/collectd.h>
#include <daemon/plugin.h>

#define FAULTS_NAME_SIZE 128

/* Not of errno: a read that brings half, or nothing. */
#define CUT_SHORT (-1)
#define AT_END (-2)

enum call {
  CALL_MALLOC,
  CALL_CALLOC,
  CALL_REALLOC,
  CALL_REALLOCARRAY,
  CALL_STRDUP,
  CALL_STRNDUP,
  CALL_NEWLOCALE,
  CALL_REGCOMP,
  CALL_REGEXEC,
  CALL_OPENDIR,
  CALL_FDOPENDIR,
  CALL_READDIR,
  CALL_SCANDIR,
  CALL_OPEN,
  CALL_OPENAT,
  CALL_READ,
  CALL_CLOSE,
  CALL_FSTAT,
  CALL_FSTATAT,
  CALL_READLINKAT,
  CALL_KCMP,
  CALL_UNAME,
  CALL_GETPWUID_R,
  CALL_PTHREAD_CREATE,
  CALL_WRITE,
  CALL_FSYNC,
  CALL_FCHMOD,
  CALL_RENAMEAT,
  CALL_UNLINKAT,
  CALL_MKDIR,
  CALL_REGISTER_READ,
  CALL_REGISTER_NOTIFICATION,
  CALL_DISPATCH,
  CALLS
};

#define CALLS_MAX 32768
#define FILES_MAX 256

#define OPEN_ERRORS                                                            \
  EMFILE, ENFILE, ENOMEM, EIO, EINTR, EACCES, EPERM, ENOENT, ESRCH, ENOTDIR

/* Errors as of the manual pages, and of what procfs adds to them. */
static const struct {
  const char *name;
  int errors[12]; /* 0 behind the last */
} calls[CALLS] = {
    [CALL_MALLOC] = {"malloc", {ENOMEM}},
    [CALL_CALLOC] = {"calloc", {ENOMEM}},
    [CALL_REALLOC] = {"realloc", {ENOMEM}},
    [CALL_REALLOCARRAY] = {"reallocarray", {ENOMEM}},
    [CALL_STRDUP] = {"strdup", {ENOMEM}},
    [CALL_STRNDUP] = {"strndup", {ENOMEM}},
    [CALL_NEWLOCALE] = {"newlocale", {ENOMEM}},
    [CALL_REGCOMP] = {"regcomp", {ENOMEM}},
    [CALL_REGEXEC] = {"regexec", {ENOMEM}},
    [CALL_OPENDIR] = {"opendir", {OPEN_ERRORS}},
    [CALL_FDOPENDIR] = {"fdopendir", {ENOMEM}},
    [CALL_READDIR] = {"readdir", {EIO, ENOENT}},
    [CALL_SCANDIR] = {"scandir", {OPEN_ERRORS}},
    [CALL_OPEN] = {"open", {OPEN_ERRORS}},
    [CALL_OPENAT] = {"openat", {OPEN_ERRORS}},
    [CALL_READ] = {"read",
                   {EIO, EINTR, ENOMEM, EACCES, EPERM, ENOENT, ESRCH, EISDIR,
                    CUT_SHORT, AT_END}},
    [CALL_CLOSE] = {"close", {EIO, EINTR}},
    [CALL_FSTAT] = {"fstat", {EIO, ENOMEM, EACCES, ENOENT, ESRCH}},
    [CALL_FSTATAT] = {"fstatat", {EIO, ENOMEM, EACCES, ENOENT, ESRCH}},
    [CALL_READLINKAT] = {"readlinkat", {EIO, ENOMEM, EACCES, ENOENT, ESRCH}},
    [CALL_KCMP] = {"kcmp", {EPERM, ESRCH, ENOSYS}},
    [CALL_UNAME] = {"uname", {EFAULT}},
    [CALL_GETPWUID_R] = {"getpwuid_r", {EIO, EMFILE, ENOMEM, ERANGE, EINTR}},
    [CALL_PTHREAD_CREATE] = {"pthread_create", {EAGAIN}},
    [CALL_WRITE] = {"write", {ENOSPC, EDQUOT, EIO, EINTR, CUT_SHORT}},
    [CALL_FSYNC] = {"fsync", {EIO, ENOSPC, EDQUOT}},
    [CALL_FCHMOD] = {"fchmod", {EPERM, EIO, EROFS}},
    [CALL_RENAMEAT] = {"renameat", {ENOSPC, EACCES, EIO, EROFS, EISDIR}},
    [CALL_UNLINKAT] = {"unlinkat", {EACCES, EPERM, EIO, EROFS, ENOENT}},
    [CALL_MKDIR] = {"mkdir", {EACCES, ENOSPC, EROFS, ENOENT}},
    [CALL_REGISTER_READ] = {"plugin_register_complex_read", {ENOMEM}},
    [CALL_REGISTER_NOTIFICATION] = {"plugin_register_notification", {ENOMEM}},
    [CALL_DISPATCH] = {"plugin_dispatch_values", {ENOMEM}},
};

/* Threads have lanes, so that each one's calls have the same numbers in every
 * run, whoever is faster. The first thread that is started has the lane of who
 * starts it, and is waited for by it. */
#define LANES 2

WRAPPED(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex);
WRAPPED(int, pthread_cond_signal, pthread_cond_t *cond);

static atomic_bool is_counting;
static atomic_bool is_skipping; /* in the first lane */
static atomic_uint made[LANES];
static _Thread_local unsigned lane;
static atomic_uint threads; /* that were started since the start */
static unsigned watched;    /* the lane in which a call is to fail */
/* Guards the variables below that several threads touch. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint made_of[CALLS];
static atomic_long blocks;
static _Atomic uint64_t now_ns = UINT64_C(1000) * 1000000000;
static unsigned char kinds[CALLS_MAX + 1];
static uint32_t objects[CALLS_MAX + 1]; /* hashes; 0 for none */
static unsigned fails_at, fails_how;
static int failed_with;
static char description[FAULTS_NAME_SIZE + 64];
/* The thread of the second lane, which waits for work. */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static const pthread_cond_t *waits_for;
static bool is_busy;

void faults_pass(uint64_t ns) { now_ns += ns; }

void faults_watch(unsigned which) { watched = which; }

void faults_skip(bool skips) { is_skipping = skips; }

void faults_await_idle(void) {
  pthread_mutex_lock(&lock);
  while (is_busy)
    __real_pthread_cond_wait(&idle, &lock);
  pthread_mutex_unlock(&lock);
}

void faults_start(unsigned at, unsigned way) {
  fails_at = at;
  fails_how = way;
  failed_with = 0;
  description[0] = '\0';
  threads = 0;
  waits_for = NULL;
  is_busy = false;
  for (int i = 0; i < LANES; i++)
    made[i] = 0;
  for (int i = 0; i < CALLS; i++)
    made_of[i] = 0;
  is_counting = true;
}

void faults_stop(void) { is_counting = false; }

unsigned faults_calls(void) { return made[watched]; }

static unsigned count_ways(unsigned n) {
  unsigned ways = 0;

  while (calls[kinds[n]].errors[ways])
    ways++;
  return ways;
}

const char *faults_made(void) {
  const char *made_so;

  pthread_mutex_lock(&lock);
  made_so = description[0] ? description : NULL;
  pthread_mutex_unlock(&lock);
  return made_so;
}

int faults_error(void) {
  int error;

  pthread_mutex_lock(&lock);
  error = failed_with > 0 ? failed_with : 0;
  pthread_mutex_unlock(&lock);
  return error;
}

unsigned faults_calls_of(const char *name) {
  for (int i = 0; i < CALLS; i++)
    if (strcmp(calls[i].name, name) == 0)
      return made_of[i];
  return 0;
}

void faults_take_block(void) { blocks++; }

static unsigned complaints;

void faults_complain(const char *format, ...) {
  va_list args;

  if (complaints++ > 40)
    return;
  va_start(args, format);
  vprint_error(format, args);
  va_end(args);
  print_error(" (%s)\n", faults_made() ? faults_made() : "no fault");
}

/* By one call of the system: before and after each of thousands of runs. */
static int count_open_files(void) {
  struct pollfd fds[FILES_MAX];
  int n = 0;

  for (int fd = 0; fd < FILES_MAX; fd++)
    fds[fd] = (struct pollfd){.fd = fd};
  poll(fds, FILES_MAX, 0);
  for (int fd = 0; fd < FILES_MAX; fd++)
    n += !(fds[fd].revents & POLLNVAL);
  return n;
}

static void try_one(void (*try)(unsigned at, unsigned way), unsigned at,
                    unsigned way) {
  int files = count_open_files();
  long before = blocks;

  try(at, way);
  if (!faults_made())
    faults_complain("call %u was not made", at);
  if (blocks != before)
    faults_complain("%ld blocks of memory are left", blocks - before);
  if (count_open_files() != files)
    faults_complain("%d files are left open", count_open_files() - files);
}

static unsigned number_from(const char *variable, unsigned usual) {
  const char *text = getenv(variable);

  return text && atoi(text) > 0 ? (unsigned)atoi(text) : usual;
}

/* Counts the chosen calls after `from` and before this one that are like it. */
static unsigned count_alike(unsigned from, unsigned at,
                            const unsigned char *ways) {
  unsigned n = 0;

  for (unsigned i = from + 1; i < at && objects[at]; i++)
    n += ways[i] && kinds[i] == kinds[at] && objects[i] == objects[at];
  return n;
}

unsigned faults_sweep(unsigned from, unsigned to, bool (*is_swept)(unsigned at),
                      void (*try)(unsigned at, unsigned way)) {
  static unsigned char ways[CALLS_MAX + 1];
  static unsigned alike[CALLS_MAX + 1];
  unsigned step = number_from("FAULTS_STEP", 1);
  unsigned share = number_from("FAULTS_ALIKE", 4);
  unsigned swept = 0, tried = 0;

  /* Before the runs that follow overwrite them. */
  assert_in_range(to, from + 1, CALLS_MAX);
  for (unsigned at = from + 1; at <= to; at++) {
    bool is_chosen = !is_swept || is_swept(at);

    ways[at] = (unsigned char)(is_chosen ? count_ways(at) : 0);
    alike[at] = count_alike(from, at, ways);
    swept += is_chosen;
  }
  complaints = 0;
  for (unsigned at = from + 1; at <= to; at += step)
    for (unsigned way = 0; way < ways[at]; way++) {
      if (alike[at] > 0 && (alike[at] + way) % share != 0)
        continue;
      try_one(try, at, way);
      tried++;
    }
  print_message("%u faults in %u calls\n", tried, swept);
  assert_int_equal(complaints, 0);
  return swept;
}

static const char *name_of_error(int error) {
  return error == CUT_SHORT ? "half of it"
         : error == AT_END  ? "end"
                            : error_name(error);
}

static uint32_t hash_of(const char *text) {
  uint32_t hash = 0;

  for (; *text; text++)
    hash = (hash ^ (unsigned char)*text) * 16777619 + 1;
  return hash;
}

/* Counts the call. Returns 0, or what it is to fail with: an error, which is in
 * errno too, CUT_SHORT or AT_END. object: the name of what it is made on. */
static int fault(enum call call, const char *object) {
  unsigned n;
  int error;

  if (!is_counting || (lane == 0 && is_skipping))
    return 0;
  n = ++made[lane];
  made_of[call]++;
  if (lane != watched)
    return 0;
  if (n <= CALLS_MAX) {
    kinds[n] = (unsigned char)call;
    /* The name of a descriptor: another thread may get that number, and write
     * its own name there, as soon as the file is closed. */
    pthread_mutex_lock(&lock);
    objects[n] = hash_of(object);
    pthread_mutex_unlock(&lock);
  }
  if (n != fails_at)
    return 0;
  error = calls[call].errors[fails_how];
  pthread_mutex_lock(&lock);
  failed_with = error;
  snprintf(description, sizeof(description), "%s %s: %s", calls[call].name,
           object, name_of_error(error));
  pthread_mutex_unlock(&lock);
  if (error > 0)
    errno = error;
  return error;
}

/* --- memory --- */

WRAPPED(void *, malloc, size_t size);
WRAPPED(void *, calloc, size_t n, size_t size);
WRAPPED(void *, realloc, void *block, size_t size);
WRAPPED(void *, reallocarray, void *block, size_t n, size_t size);
WRAPPED(char *, strdup, const char *text);
WRAPPED(char *, strndup, const char *text, size_t len);
WRAPPED(void, free, void *block);

static void *taken(void *block) {
  blocks += block != NULL;
  return block;
}

void *__wrap_malloc(size_t size) {
  return fault(CALL_MALLOC, "") ? NULL : taken(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size) {
  return fault(CALL_CALLOC, "") ? NULL : taken(__real_calloc(n, size));
}

void *__wrap_realloc(void *block, size_t size) {
  if (fault(CALL_REALLOC, ""))
    return NULL;
  return block ? __real_realloc(block, size)
               : taken(__real_realloc(NULL, size));
}

void *__wrap_reallocarray(void *block, size_t n, size_t size) {
  if (fault(CALL_REALLOCARRAY, ""))
    return NULL;
  return block ? __real_reallocarray(block, n, size)
               : taken(__real_reallocarray(NULL, n, size));
}

char *__wrap_strdup(const char *text) {
  return fault(CALL_STRDUP, "") ? NULL : taken(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t len) {
  return fault(CALL_STRNDUP, "") ? NULL : taken(__real_strndup(text, len));
}

void __wrap_free(void *block) {
  blocks -= block != NULL;
  __real_free(block);
}

/* --- what takes memory inside the C library --- */

WRAPPED(locale_t, newlocale, int mask, const char *name, locale_t base);
WRAPPED(void, freelocale, locale_t locale);
WRAPPED(int, regcomp, regex_t *regex, const char *pattern, int flags);
WRAPPED(void, regfree, regex_t *regex);
WRAPPED(int, regexec, const regex_t *regex, const char *text, size_t n,
        regmatch_t match[], int flags);

locale_t __wrap_newlocale(int mask, const char *name, locale_t base) {
  return fault(CALL_NEWLOCALE, "") ? (locale_t)0
                                   : taken(__real_newlocale(mask, name, base));
}

void __wrap_freelocale(locale_t locale) {
  blocks--;
  __real_freelocale(locale);
}

int __wrap_regcomp(regex_t *regex, const char *pattern, int flags) {
  int r = fault(CALL_REGCOMP, pattern) ? REG_ESPACE
                                       : __real_regcomp(regex, pattern, flags);

  blocks += r == 0;
  return r;
}

void __wrap_regfree(regex_t *regex) {
  blocks--;
  __real_regfree(regex);
}

int __wrap_regexec(const regex_t *regex, const char *text, size_t n,
                   regmatch_t match[], int flags) {
  return fault(CALL_REGEXEC, text)
             ? REG_ESPACE
             : __real_regexec(regex, text, n, match, flags);
}

/* --- the kernel, its clock, its users --- */

long __wrap_syscall(long number, ...);
int __wrap_uname(struct utsname *u);
WRAPPED(int, clock_gettime, clockid_t clock, struct timespec *ret);
WRAPPED(int, pthread_cond_timedwait, pthread_cond_t *cond,
        pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buffer, size_t size,
                      struct passwd **ret);
WRAPPED(int, pthread_create, pthread_t *thread,
        const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

/* kcmp(2), the only one: two pids have one address space where they differ by
 * one. */
long __wrap_syscall(long number, ...) {
  va_list args;
  unsigned a, b;

  (void)number;
  va_start(args, number);
  a = va_arg(args, unsigned);
  b = va_arg(args, unsigned);
  va_end(args);
  if (fault(CALL_KCMP, ""))
    return -1;
  return a + 1 == b ? 0 : 1;
}

int __wrap_uname(struct utsname *u) {
  if (fault(CALL_UNAME, ""))
    return -1;
  *u = (struct utsname){.sysname = "Linux", .release = "6.18.0"};
  return 0;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret) {
  uint64_t ns;

  if ((clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) || !is_counting)
    return __real_clock_gettime(clock, ret);
  ns = atomic_fetch_add(&now_ns, 1000);
  *ret = (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                           .tv_nsec = (long)(ns % 1000000000)};
  return 0;
}

static uint64_t to_ns(const struct timespec *t) {
  return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

/* `until` is a time of our clock, and the C library waits by the machine's
 * clock, which may be earlier or later. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until) {
  uint64_t end = to_ns(until), now = now_ns;
  struct timespec t;

  if (!is_counting)
    return __real_pthread_cond_timedwait(cond, mutex, until);
  __real_clock_gettime(CLOCK_MONOTONIC, &t);
  end = to_ns(&t) + (end > now ? end - now : 0);
  t = (struct timespec){.tv_sec = (time_t)(end / 1000000000),
                        .tv_nsec = (long)(end % 1000000000)};
  return __real_pthread_cond_timedwait(cond, mutex, &t);
}

/* A thread that waits holds the mutex under which it is given work, and
 * signalled. */
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
  if (lane == LANES - 1) {
    pthread_mutex_lock(&lock);
    waits_for = cond;
    is_busy = false;
    pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&lock);
  }
  return __real_pthread_cond_wait(cond, mutex);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond) {
  pthread_mutex_lock(&lock);
  is_busy |= cond == waits_for;
  pthread_mutex_unlock(&lock);
  return __real_pthread_cond_signal(cond);
}

/* uid 7 is "seven"; no other has a name. */
int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buffer, size_t size,
                      struct passwd **ret) {
  int error = fault(CALL_GETPWUID_R, "");

  *ret = NULL;
  if (error || uid != 7)
    return error;
  snprintf(buffer, size, "seven");
  *pw = (struct passwd){.pw_name = buffer, .pw_uid = uid};
  *ret = pw;
  return 0;
}

/* The work of a new thread, and its lane. */
struct start {
  void *(*run)(void *);
  void *argument;
  unsigned lane;
};

static void *start_in_lane(void *argument) {
  struct start start = *(struct start *)argument;

  __real_free(argument);
  lane = start.lane;
  return start.run(start.argument);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*run)(void *), void *argument) {
  int error = fault(CALL_PTHREAD_CREATE, "");
  struct start *start = error ? NULL : __real_malloc(sizeof(*start));

  if (!start)
    return error ? error : EAGAIN;
  *start = (struct start){run, argument, threads++ == 0 ? lane : LANES - 1};
  pthread_mutex_lock(&lock);
  is_busy |= start->lane == LANES - 1;
  pthread_mutex_unlock(&lock);
  error = __real_pthread_create(thread, attributes, start_in_lane, start);
  if (error)
    __real_free(start);
  return error;
}

/* --- files --- */

static char opened[FILES_MAX][FAULTS_NAME_SIZE]; /* by descriptor */
static char root[PATH_MAX];

void faults_set_root(const char *path) {
  snprintf(root, sizeof(root), "%s", path);
}

WRAPPED(DIR *, opendir, const char *path);
WRAPPED(DIR *, fdopendir, int fd);
WRAPPED(struct dirent *, readdir, DIR *dir);
WRAPPED(int, scandir, const char *path, struct dirent ***ret,
        int (*wants)(const struct dirent *),
        int (*compare)(const struct dirent **, const struct dirent **));
WRAPPED(int, open, const char *path, int flags, ...);
WRAPPED(int, openat, int dir_fd, const char *path, int flags, ...);
WRAPPED(ssize_t, read, int fd, void *buffer, size_t size);
WRAPPED(int, close, int fd);
WRAPPED(int, fstat, int fd, struct stat *st);
WRAPPED(int, fstatat, int dir_fd, const char *path, struct stat *st, int flags);
WRAPPED(ssize_t, readlinkat, int dir_fd, const char *path, char *buffer,
        size_t size);

static const char *name_of(int fd) {
  return fd >= 0 && fd < FILES_MAX ? opened[fd] : "";
}

static void remember(int fd, int dir_fd, const char *path) {
  if (fd < 0 || fd >= FILES_MAX)
    return;
  pthread_mutex_lock(&lock);
  snprintf(opened[fd], FAULTS_NAME_SIZE, "%.60s/%.60s", name_of(dir_fd), path);
  pthread_mutex_unlock(&lock);
}

/* The name by which a file is opened: a descriptor of our own is the file that
 * it was opened for. */
static const char *original(const char *path) {
  static const char own[] = "/proc/self/fd/";

  return strncmp(path, own, strlen(own)) == 0
             ? name_of(atoi(path + strlen(own)))
             : path;
}

/* Redirects paths by which the plugin means the running kernel. */
static const char *redirect(const char *path, char *ret) {
  static const char *const live[] = {"/proc", "/sys/kernel/mm/ksm"};

  for (size_t i = 0; i < LENGTH(live); i++) {
    if (!is_counting || strncmp(path, live[i], strlen(live[i])) != 0 ||
        original(path) != path)
      continue;
    snprintf(ret, PATH_MAX, "%.2000s%s%s", root, i ? "/ksm" : "",
             path + strlen(live[i]));
    return ret;
  }
  return path;
}

DIR *__wrap_opendir(const char *path) {
  char other[PATH_MAX];
  DIR *dir;

  if (fault(CALL_OPENDIR, path))
    return NULL;
  dir = __real_opendir(redirect(path, other));
  if (dir)
    remember(dirfd(dir), -1, "");
  return dir;
}

DIR *__wrap_fdopendir(int fd) {
  return fault(CALL_FDOPENDIR, name_of(fd)) ? NULL : __real_fdopendir(fd);
}

struct dirent *__wrap_readdir(DIR *dir) {
  return fault(CALL_READDIR, name_of(dirfd(dir))) ? NULL : __real_readdir(dir);
}

int __wrap_scandir(const char *path, struct dirent ***ret,
                   int (*wants)(const struct dirent *),
                   int (*compare)(const struct dirent **,
                                  const struct dirent **)) {
  int n = -1;

  if (!fault(CALL_SCANDIR, path))
    n = __real_scandir(path, ret, wants, compare);
  blocks += n > 0 ? n + 1 : 0; /* the names, and their list */
  return n;
}

int __wrap_open(const char *path, int flags, ...) {
  char other[PATH_MAX];
  va_list args;
  int fd, mode;

  if (fault(CALL_OPEN, original(path)))
    return -1;
  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, int) : 0;
  va_end(args);
  fd = __real_open(redirect(path, other), flags, mode);
  remember(fd, -1, original(path));
  return fd;
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...) {
  va_list args;
  int fd, mode;

  if (fault(CALL_OPENAT, path))
    return -1;
  va_start(args, flags);
  mode = flags & O_CREAT ? va_arg(args, int) : 0;
  va_end(args);
  fd = __real_openat(dir_fd, path, flags, mode);
  remember(fd, dir_fd, path);
  return fd;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size) {
  int error = fault(CALL_READ, name_of(fd));
  ssize_t n;

  if (error > 0)
    return -1;
  n = __real_read(fd, buffer, size);
  return error == CUT_SHORT ? n / 2 : error == AT_END ? 0 : n;
}

/* Linux closes even where it reports an error. */
int __wrap_close(int fd) {
  int error = fault(CALL_CLOSE, name_of(fd));
  int r = __real_close(fd);

  if (error)
    errno = error;
  return error ? -1 : r;
}

int __wrap_fstat(int fd, struct stat *st) {
  return fault(CALL_FSTAT, name_of(fd)) ? -1 : __real_fstat(fd, st);
}

int __wrap_fstatat(int dir_fd, const char *path, struct stat *st, int flags) {
  return fault(CALL_FSTATAT, path) ? -1
                                   : __real_fstatat(dir_fd, path, st, flags);
}

ssize_t __wrap_readlinkat(int dir_fd, const char *path, char *buffer,
                          size_t size) {
  return fault(CALL_READLINKAT, path)
             ? -1
             : __real_readlinkat(dir_fd, path, buffer, size);
}

/* --- writing --- */

WRAPPED(ssize_t, write, int fd, const void *bytes, size_t size);
int __wrap_fsync(int fd);
WRAPPED(int, fchmod, int fd, mode_t mode);
WRAPPED(int, renameat, int from_fd, const char *from, int to_fd,
        const char *to);
WRAPPED(int, unlinkat, int dir_fd, const char *path, int flags);
WRAPPED(int, mkdir, const char *path, mode_t mode);

ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
  int error = fault(CALL_WRITE, name_of(fd));

  return error > 0 ? -1 : __real_write(fd, bytes, error ? size / 2 : size);
}

/* The disk is not tested here. */
int __wrap_fsync(int fd) { return fault(CALL_FSYNC, name_of(fd)) ? -1 : 0; }

int __wrap_fchmod(int fd, mode_t mode) {
  return fault(CALL_FCHMOD, name_of(fd)) ? -1 : __real_fchmod(fd, mode);
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to) {
  return fault(CALL_RENAMEAT, to) ? -1
                                  : __real_renameat(from_fd, from, to_fd, to);
}

int __wrap_unlinkat(int dir_fd, const char *path, int flags) {
  return fault(CALL_UNLINKAT, path) ? -1 : __real_unlinkat(dir_fd, path, flags);
}

int __wrap_mkdir(const char *path, mode_t mode) {
  return fault(CALL_MKDIR, path) ? -1 : __real_mkdir(path, mode);
}

/* --- the daemon --- */

WRAPPED(int, plugin_register_complex_read, const char *group, const char *name,
        plugin_read_cb callback, cdtime_t interval,
        user_data_t const *user_data);
WRAPPED(int, plugin_register_notification, const char *name,
        plugin_notification_cb callback, user_data_t const *user_data);
WRAPPED(int, plugin_dispatch_values, value_list_t const *vl);

int __wrap_plugin_register_complex_read(const char *group, const char *name,
                                        plugin_read_cb callback,
                                        cdtime_t interval,
                                        user_data_t const *user_data) {
  return fault(CALL_REGISTER_READ, name)
             ? -1
             : __real_plugin_register_complex_read(group, name, callback,
                                                   interval, user_data);
}

int __wrap_plugin_register_notification(const char *name,
                                        plugin_notification_cb callback,
                                        user_data_t const *user_data) {
  return fault(CALL_REGISTER_NOTIFICATION, name)
             ? -1
             : __real_plugin_register_notification(name, callback, user_data);
}

int __wrap_plugin_dispatch_values(value_list_t const *vl) {
  return fault(CALL_DISPATCH, vl->type) ? -1
                                        : __real_plugin_dispatch_values(vl);
}
