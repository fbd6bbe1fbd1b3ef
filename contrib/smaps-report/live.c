#include "live.h"
#include "extract.h"
#include "memory.h"
#include "mistake.h"
#include "text.h"

#include <smaps/group_name.h>

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* The time for the run, and the time for collectd to end after SIGTERM. */
#define DEADLINE_SECONDS 120
#define GRACE_SECONDS 5

/* There is only one interval for all readings. The user's blocks come later, so
 * a ReadBudget in them wins. */
#define READ_BUDGET_PERCENT "10"

static const char *const default_configs[] = {
    "/etc/collectd/collectd.conf",
    "/etc/collectd.conf",
    "/opt/collectd/etc/collectd.conf",
};
#define DEFAULT_CONFIGS (sizeof(default_configs) / sizeof(*default_configs))

/* Searched after PATH, which often lacks sbin. */
static const char sbin[] = "/usr/sbin:/usr/local/sbin:/opt/collectd/sbin";

static const char *const files[] = {"collectd.conf", "log", "state.json",
                                    "collectd.pid"};
enum { CONFIG, LOG, STATE, PID_FILE, FILES };

struct live {
  char directory[PATH_MAX];
  char paths[FILES][PATH_MAX + 16];
  char collectd[PATH_MAX];
  struct config_error *reason;
};

static int refuse(struct live *l, const char *what, const char *path,
                  int error) {
  struct group_name shown;

  config_error_format(
      l->reason, "%s \"%s\": %s", what,
      escape_text(path, strlen(path), shown.text, GROUP_NAME_SIZE),
      strerror(error));
  return -error;
}

/* ---- the directory ---- */

static int make_directory(struct live *l) {
  const char *parent = getenv("TMPDIR");
  int n;

  if (!parent || parent[0] != '/')
    parent = "/tmp";
  n = snprintf(l->directory, sizeof(l->directory), "%s/smaps-report-XXXXXX",
               parent);
  if (n >= (int)sizeof(l->directory))
    return refuse(l, "TMPDIR", parent, ENAMETOOLONG);
  /* The mode is 0700. */
  if (!mkdtemp(l->directory))
    return refuse(l, "directory", l->directory, errno);
  for (size_t i = 0; i < FILES; i++)
    snprintf(l->paths[i], sizeof(l->paths[i]), "%s/%s", l->directory, files[i]);
  return 0;
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *walk) {
  (void)st;
  (void)type;
  (void)walk;
  remove(path);
  return 0;
}

static void remove_directory(const struct live *l) {
  nftw(l->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the configuration ---- */

static const char *find_config(const struct options *o) {
  if (o->config)
    return o->config;
  for (size_t i = 0; i < DEFAULT_CONFIGS; i++)
    if (access(default_configs[i], F_OK) == 0)
      return default_configs[i];
  return NULL;
}

/* Writes an option with a quoted string. */
static void write_option(FILE *out, const char *key, const char *value) {
  fprintf(out, "%s \"", key);
  for (; *value; value++) {
    if (*value == '"' || *value == '\\')
      fputc('\\', out);
    fputc(*value, out);
  }
  fputs("\"\n", out);
}

static int write_plugin_dir(struct live *l, const struct options *o,
                            FILE *out) {
  char path[PATH_MAX];

  if (!o->plugin_dir)
    return 0;
  /* The daemon changes its working directory. */
  if (!realpath(o->plugin_dir, path))
    return refuse(l, "--plugin-dir", o->plugin_dir, errno);
  write_option(out, "PluginDir", path);
  return 0;
}

static void write_globals(const struct live *l, FILE *out) {
  char host[256];

  if (gethostname(host, sizeof(host)) < 0)
    strcpy(host, "localhost");
  host[sizeof(host) - 1] = '\0';
  write_option(out, "Hostname", host);
  fputs("FQDNLookup false\nInterval 10\n", out);
  write_option(out, "BaseDir", l->directory);
  write_option(out, "PIDFile", l->paths[PID_FILE]);
}

static void write_block(const struct live *l, const char *more, FILE *out) {
  fputs("<Plugin smaps>\n", out);
  write_option(out, "StateFile", l->paths[STATE]);
  fprintf(out, "StateAtStart true\n%s</Plugin>\n", more);
}

/* In collectd a later option wins: to check StateFile takes the user's before
 * ours. */
static int write_blocks(struct live *l, const struct options *o,
                        const char *config, FILE *out) {
  bool is_check = o->command == COMMAND_CHECK;
  int rc = 0;

  fputs("LoadPlugin smaps\n", out);
  if (!is_check)
    write_block(l, "ReadBudget " READ_BUDGET_PERCENT "\n", out);
  if (config)
    rc = extract_file(config, is_check ? EXTRACT_NAMED : EXTRACT_BLOCKS, out,
                      l->reason);
  if (is_check)
    write_block(l, "", out);
  return rc;
}

static int write_all(struct live *l, const struct options *o, FILE *out) {
  const char *config = find_config(o);
  int rc = 0;

  if (!config && o->command == COMMAND_CHECK)
    return config_error_set(l->reason, "there is no %s: expected -C FILE",
                            default_configs[0]);
  write_globals(l, out);
  if (config)
    rc = extract_file(config, EXTRACT_GLOBALS, out, l->reason);
  if (rc == 0)
    rc = write_plugin_dir(l, o, out);
  return rc == 0 ? write_blocks(l, o, config, out) : rc;
}

static int write_config(struct live *l, const struct options *o) {
  FILE *out = fopen(l->paths[CONFIG], "we");
  int rc;

  if (!out)
    return refuse(l, "file", l->paths[CONFIG], errno);
  rc = write_all(l, o, out);
  if (fclose(out) != 0 && rc == 0)
    rc = refuse(l, "file", l->paths[CONFIG], errno);
  return rc;
}

/* A check of the wrong file, or of an Include that finds nothing, would look
 * like a good one. */
static void tell_if_default(const struct live *l, const struct options *o) {
  FILE *in = fopen(l->paths[CONFIG], "re");
  struct group_name shown;
  bool has_block = false;
  char *line = NULL;
  size_t size = 0;
  const char *config = find_config(o);

  while (in && !has_block && getline(&line, &size, in) > 0)
    has_block = strncmp(line, EXTRACT_MARK, strlen(EXTRACT_MARK)) == 0;
  free(line);
  if (!in)
    return;
  fclose(in);
  if (!has_block && config)
    fprintf(stderr,
            "%s: there is no <Plugin smaps> in it or in the files that it "
            "includes: the rules are the defaults\n",
            escape_text(config, strlen(config), shown.text, GROUP_NAME_SIZE));
}

/* ---- the daemon ---- */

static bool is_program(const char *path) {
  struct stat st;

  return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool find_in(struct live *l, const char *directories) {
  while (directories && *directories) {
    size_t len = strcspn(directories, ":");

    snprintf(l->collectd, sizeof(l->collectd), "%.*s/collectd", (int)len,
             directories);
    if (len > 0 && is_program(l->collectd))
      return true;
    directories += len + (directories[len] == ':');
  }
  return false;
}

static int find_collectd(struct live *l, const struct options *o) {
  if (o->collectd) {
    snprintf(l->collectd, sizeof(l->collectd), "%s", o->collectd);
    return is_program(l->collectd)
               ? 0
               : refuse(l, "--collectd", o->collectd, errno ? errno : EACCES);
  }
  if (find_in(l, getenv("PATH")) || find_in(l, sbin))
    return 0;
  return config_error_set(l->reason,
                          "no collectd in PATH or %s: expected "
                          "--collectd PATH",
                          sbin);
}

static int spawn(struct live *l, pid_t *ret) {
  char *argv[] = {l->collectd, (char[]){"-T"}, (char[]){"-C"}, l->paths[CONFIG],
                  NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  int rc;

  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, l->paths[LOG],
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  rc = posix_spawn(ret, l->collectd, &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return rc == 0 ? 0 : refuse(l, "collectd", l->collectd, rc);
}

/* Waits for the process to end and returns its status. Returns -1 after a
 * timeout (*ret_signal is 0) or after a signal that ends this program. */
static int wait_for(pid_t pid, const sigset_t *signals, unsigned seconds,
                    int *ret_signal) {
  struct timespec now, end;
  int status;

  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += (time_t)seconds;
  *ret_signal = 0;
  for (;;) {
    /* If the child ends just before sigtimedwait(), this limits the delay. */
    const struct timespec moment = {.tv_nsec = 100000000};

    if (waitpid(pid, &status, WNOHANG) == pid)
      return status;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec >= end.tv_sec)
      return -1;
    *ret_signal = sigtimedwait(signals, NULL, &moment);
    if (*ret_signal > 0 && *ret_signal != SIGCHLD)
      return -1;
    *ret_signal = 0;
  }
}

/* The status of waitpid(), or a negative errno with the reason. */
static int run(struct live *l, const sigset_t *signals, int *ret_signal) {
  int status, ignored;
  pid_t pid;

  status = spawn(l, &pid);
  if (status < 0)
    return status;
  status = wait_for(pid, signals, DEADLINE_SECONDS, ret_signal);
  if (status >= 0)
    return status;
  kill(pid, SIGTERM);
  if (wait_for(pid, signals, GRACE_SECONDS, &ignored) < 0) {
    kill(pid, SIGKILL);
    waitpid(pid, &ignored, 0);
  }
  return config_error_set(l->reason, "collectd did not end in %d s",
                          DEADLINE_SECONDS);
}

/* ---- the result ---- */

static void print_log(const struct live *l, bool only_ours) {
  struct style plain = {.out = stderr};
  FILE *log = fopen(l->paths[LOG], "re");
  struct text text = {0};
  char *line = NULL;
  size_t size = 0;

  while (log && getline(&line, &size, log) > 0) {
    line[strcspn(line, "\n")] = '\0';
    if (only_ours && !strstr(line, "smaps plugin: "))
      continue;
    text_clear(&text);
    text_add_name(&text, line, &plain);
    fprintf(stderr, "%s\n", text.bytes ? text.bytes : "");
  }
  text_done(&text);
  free(line);
  if (log)
    fclose(log);
}

/* Prints the mistakes for which collectd did not start. */
static int print_mistakes(const struct live *l) {
  FILE *log = fopen(l->paths[LOG], "re");
  FILE *config = fopen(l->paths[CONFIG], "re");
  size_t n = log && config ? mistake_print(log, config, stderr) : 0;

  if (log)
    fclose(log);
  if (config)
    fclose(config);
  return n > 0 ? LIVE_MISTAKES : 0;
}

static int open_state(struct live *l, int status, FILE **ret) {
  if (status < 0)
    return -EIO;
  *ret = status == 0 ? fopen(l->paths[STATE], "re") : NULL;
  print_log(l, *ret != NULL);
  if (*ret)
    return 0;
  if (WIFSIGNALED(status))
    config_error_format(l->reason, "collectd was ended by signal %d",
                        WTERMSIG(status));
  else if (status != 0)
    config_error_format(l->reason,
                        "collectd ended with status %d; its log is above",
                        WEXITSTATUS(status));
  else
    config_error_format(l->reason,
                        "collectd has written no snapshot; its log is above");
  return -EIO;
}

static int run_in_directory(struct live *l, const struct options *o,
                            const sigset_t *signals, FILE **ret,
                            int *ret_signal) {
  int rc = write_config(l, o), status;

  if (rc == -EBADMSG) {
    fprintf(stderr, "%s\n", l->reason->text);
    return LIVE_MISTAKES;
  }
  if (rc < 0)
    return rc;
  if (o->command == COMMAND_CHECK)
    tell_if_default(l, o);
  status = run(l, signals, ret_signal);
  if (o->command == COMMAND_CHECK && status > 0)
    rc = print_mistakes(l);
  return rc ? rc : open_state(l, status, ret);
}

/* Blocks signals that would end this program before the directory is removed.
 */
static void hold_signals(sigset_t *ret_signals, sigset_t *ret_before) {
  static const int held[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};

  sigemptyset(ret_signals);
  for (size_t i = 0; i < sizeof(held) / sizeof(*held); i++)
    sigaddset(ret_signals, held[i]);
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, ret_signals, ret_before);
}

int live_run(const struct options *o, FILE **ret, struct config_error *reason) {
  struct live *l = memory_array(NULL, 1, sizeof(*l));
  sigset_t signals, before;
  int interrupted = 0;
  int rc;

  *ret = NULL;
  l->reason = reason;
  rc = find_collectd(l, o);
  hold_signals(&signals, &before);
  if (rc == 0)
    rc = make_directory(l);
  if (rc == 0) {
    rc = run_in_directory(l, o, &signals, ret, &interrupted);
    remove_directory(l);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (interrupted)
    raise(interrupted);
  free(l);
  return rc;
}
