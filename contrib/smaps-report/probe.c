/* SPDX-License-Identifier: MIT */
#include "probe.h"

#include "config.h"
#include "config_file.h"
#include "hints.h"
#include "host_lookup.h"
#include "log.h"
#include "memory.h"
#include "messages.h"
#include "other_plugins.h"
#include "text.h"

#include <smaps/collector.h>
#include <smaps/store.h>

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

static const char *const default_configs[] = {
    "/etc/collectd/collectd.conf",
    "/etc/collectd.conf",
    "/opt/collectd/etc/collectd.conf",
};
#define DEFAULT_CONFIGS (sizeof(default_configs) / sizeof(*default_configs))

/* All processes are read in one interval, so it may cost more. */
#define READ_BUDGET_PERCENT 10

/* Mappings of a process that are shown; the others are one row. */
#define MAPPINGS_MAX 1000

/* The longest MaxLockHold that may be set. */
#define LOCK_HOLD_NS (60 * NS_PER_S)

struct probe {
  struct settings settings;
  struct collector *collector;
  struct log_state log;
  const char *config; /* NULL: there is none */
  bool has_block;
  bool is_check;
  bool is_loaded;  /* by the part of the configuration read until now */
  double captured; /* the time of the captured /proc; 0: live */
  char *early;     /* the file of a block before LoadPlugin, or NULL */
  struct other_plugins others;
  struct host_lookup host;
};

/* ---- the configuration ---- */

static const char *find_config(const char *given) {
  if (given)
    return given;
  for (size_t i = 0; i < DEFAULT_CONFIGS; i++)
    if (access(default_configs[i], F_OK) == 0)
      return default_configs[i];
  return NULL;
}

static bool is_option(const oconfig_item_t *item, const char *key) {
  return strcasecmp(item->key, key) == 0 && item->values_num > 0 &&
         item->values[0].type == OCONFIG_TYPE_STRING;
}

static bool is_regular(const char *path) {
  struct stat st;

  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The daemon gives a block to the plugin only after LoadPlugin. */
static void note_load(struct probe *p, const char *path) {
  if (p->early && !p->is_loaded && p->is_check)
    ERROR("%s: <Plugin smaps> comes before LoadPlugin smaps (%s): collectd "
          "ignores this block, move it below that line",
          p->early, path);
  p->is_loaded = true;
}

static void note_block(struct probe *p, const char *path) {
  p->has_block = true;
  if (!p->is_loaded && !p->early)
    p->early = memory_format("%s", path);
}

static void refuse(const oconfig_item_t *item, const char *path,
                   const char *why) {
  char text[512];

  config_describe(item, text, sizeof(text));
  ERROR("%s: %s: %s", path, text, why);
}

/* The daemon goes on without such an option. */
static void check_load_option(const oconfig_item_t *item, const char *path) {
  static const char *const numbers[] = {"Interval", "FlushInterval",
                                        "FlushTimeout"};

  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    if (strcasecmp(item->key, numbers[i]) == 0) {
      if (item->values_num != 1 || item->values[0].type != OCONFIG_TYPE_NUMBER)
        refuse(item, path, "expected a number of seconds, without quotes");
      return;
    }
  if (strcasecmp(item->key, "Globals") != 0)
    refuse(item, path,
           "expected Interval or another option of <LoadPlugin>; collectd "
           "ignores this one");
}

static bool is_load(const struct probe *p, const oconfig_item_t *item,
                    const char *path) {
  if (!is_option(item, "LoadPlugin") ||
      strcasecmp(item->values[0].value.string, "smaps") != 0)
    return false;
  if (p->is_check && item->values_num != 1)
    refuse(item, path, "expected the name of one plugin");
  for (int i = 0; p->is_check && i < item->children_num; i++)
    check_load_option(&item->children[i], path);
  return true;
}

static void add_item(void *context, const oconfig_item_t *item,
                     const char *path) {
  struct probe *p = context;
  const char *value;

  if (p->is_check && config_has_option(item->key))
    refuse(item, path,
           "expected in a <Plugin smaps> block; collectd ignores it here");
  if (item->values_num == 0)
    return;
  if (p->is_check) {
    other_plugins_add(&p->others, item, path);
    host_lookup_add(&p->host, item);
  }
  value = item->values[0].value.string;
  if (other_plugins_loads_all(item) || is_load(p, item, path))
    note_load(p, path);
  if (is_option(item, "Hostname")) {
    free(p->settings.host);
    p->settings.host = memory_check(strdup(value));
  }
  if (!is_option(item, "Plugin") || strcasecmp(value, "smaps") != 0)
    return;
  note_block(p, path);
  p->settings.source = path;
  config_add_block(&p->settings, item);
  p->settings.source = NULL;
}

/* ---- the files that the daemon writes ---- */

/* The daemon may be another user, with fewer rights, or own the directory. */
static void note_who_checked(void) {
  const struct passwd *user = getpwuid(geteuid());
  char number[16];

  snprintf(number, sizeof(number), "%u", geteuid());
  WARNING("The places of StateFile, StateHistory and Directory were checked as "
          "user %s. If collectd runs as another user, run check as that user.",
          user ? user->pw_name : number);
}

static int check_parent(const char *path) {
  char copy[PATH_MAX], parent[PATH_MAX + 2];
  struct stat st;

  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
    return -EISDIR;
  snprintf(copy, sizeof(copy), "%s", path);
  snprintf(parent, sizeof(parent), "%s/.", dirname(copy));
  return access(parent, W_OK | X_OK) == 0 ? 0 : -errno;
}

static void check_place(const char *option, const char *path, bool is_file) {
  const char *cause;
  int rc;

  if (!path)
    return;
  rc = is_file ? -ENOENT : store_check(path, false);
  cause = store_error(rc);
  if (rc == -ENOENT) {
    rc = check_parent(path);
    cause = strerror(-rc);
  }
  if (rc < 0)
    ERROR("smaps plugin: %s \"%s\" cannot be written: %s", option, path, cause);
}

static void check_places(const struct settings *s) {
  check_place("StateFile", s->state_file, true);
  check_place("StateHistory", s->state_history, false);
  check_place("<Capture>: Directory", s->capture.directory, false);
  if (s->state_file || s->state_history || s->capture.directory)
    note_who_checked();
}

/* ---- the whole ---- */

static int read_config(struct probe *p, struct config_error *reason) {
  const struct config_visitor visitor = {.item = add_item, .context = p};

  config_error_format(reason, "the configuration has mistakes");
  if (p->config && !config_file_read(p->config, &visitor))
    return PROBE_MISTAKES;
  if (p->is_check && !p->is_loaded)
    ERROR("%s: expected the line LoadPlugin smaps in it or in the files that "
          "it includes: without it collectd ignores each <Plugin smaps>",
          p->config);
  if (p->is_check && other_plugins_has_daemon(&p->others))
    host_lookup_check(&p->host, p->config);
  if (p->is_check)
    check_places(&p->settings);
  if (messages_errors() || (p->is_check && config_file_lost_backslash()))
    return PROBE_MISTAKES;
  /* A check of the wrong file, or of an Include that finds nothing, would look
   * like a good one. */
  if (p->is_check && !p->has_block)
    WARNING("%s: there is no <Plugin smaps> in it or in the files that it "
            "includes: the rules are the defaults",
            p->config);
  return 0;
}

/* ---- start ---- */

static void set_host(struct settings *s) {
  char name[256];

  if (s->host)
    return;
  if (gethostname(name, sizeof(name)) < 0)
    strcpy(name, "localhost");
  name[sizeof(name) - 1] = '\0';
  s->host = memory_check(strdup(name));
}

/* Only the daemon writes the state file and captures. */
static void write_no_files(struct settings *s) {
  free(s->state_file);
  s->state_file = NULL;
  free(s->capture.directory);
  s->capture.directory = NULL;
  free(s->state_history);
  s->state_history = NULL;
  s->has_snapshots = true;
  s->capture.top_mappings = MAPPINGS_MAX;
}

/* Reads the directory instead of /proc; its name is the host's. */
static void set_source(struct settings *s, const char *path) {
  char *copy = memory_format("%s", path);

  free(s->host);
  s->host = memory_format("%s", basename(copy));
  free(s->proc_root);
  s->proc_root = memory_format("%s", path);
  free(copy);
}

/* The mark is in each capture. A pipe or a device in its place would never end.
 */
static int check_source(struct probe *p, const char *path,
                        struct config_error *reason) {
  char *mark = memory_format("%s/meminfo", path);
  const char *why = NULL;
  struct stat st;
  struct statfs fs;

  if (stat(path, &st) < 0)
    why = strerror(errno);
  else if (!S_ISDIR(st.st_mode))
    why = "expected a directory; unpack an archive first, with tar";
  else if (!is_regular(mark) || access(mark, R_OK) < 0)
    why = "has no meminfo: expected a capture of /proc";
  else if (statfs(mark, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC &&
           stat(mark, &st) == 0)
    p->captured = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
  free(mark);
  return why ? config_error_set(reason, "-S \"%s\": %s", QUOTED(path), why) : 0;
}

static void hold_long(struct policy *p) {
  p->max_lock_hold_ns = LOCK_HOLD_NS;
  p->unsampled_lock_hold_ns = LOCK_HOLD_NS;
}

/* Reading files of a captured /proc is cheap, and no process has to wait. */
static void spare_nothing(struct settings *s) {
  s->read_budget_percent = 100;
  for (size_t i = 0; i < s->n_rules; i++)
    hold_long(&s->rules[i].policy);
  hold_long(&s->other.policy);
}

static int start(struct probe *p, const struct probe_setup *setup,
                 struct config_error *reason) {
  const char *root;
  int rc;

  if (setup->source)
    set_source(&p->settings, setup->source);
  set_host(&p->settings);
  write_no_files(&p->settings);
  rc = settings_finish(&p->settings);
  if (rc == 0 && p->captured > 0)
    spare_nothing(&p->settings);
  if (rc == 0)
    rc = collector_new(&p->settings, NULL, &p->collector);
  if (rc == 0)
    return 0;
  root = p->settings.proc_root ? p->settings.proc_root : "/proc";
  config_error_format(reason, "ProcRoot \"%s\": %s", QUOTED(root),
                      rc == -ENOTTY    ? "it has no processes"
                      : rc == -EBADMSG ? "its file getconf is malformed"
                                       : strerror(rc < 0 ? -rc : ENOENT));
  return rc < 0 ? rc : -ENOENT;
}

static int set_up(struct probe *p, const struct probe_setup *setup,
                  struct config_error *reason) {
  int rc;

  settings_init(&p->settings);
  p->settings.interval_ns = setup->interval_ns;
  if (!setup->is_check)
    p->settings.read_budget_percent = READ_BUDGET_PERCENT;
  p->log.is_command = true;
  p->log.has_hints = setup->is_check;
  p->is_check = setup->is_check;
  p->config = find_config(setup->config);
  /* Debian's configuration loads the plugin processes, which needs libmnl0, and
   * no package asks for that (collectd 5.12.0-14). */
  if (!p->config && p->is_check) {
    ERROR("there is no %s, without which collectd does not start: install the "
          "package that has it (Debian: sudo apt install "
          "--no-install-recommends collectd libmnl0), or name another file "
          "with -C FILE",
          default_configs[0]);
    return PROBE_MISTAKES;
  }
  rc = setup->source ? check_source(p, setup->source, reason) : 0;
  if (rc == 0)
    rc = read_config(p, reason);
  return rc ? rc : start(p, setup, reason);
}

int probe_new(const struct probe_setup *setup, struct probe **ret,
              struct config_error *reason) {
  struct probe *p = memory_array(NULL, 1, sizeof(*p));
  int rc;

  memset(p, 0, sizeof(*p));
  rc = set_up(p, setup, reason);
  if (rc == 0)
    *ret = p;
  else
    probe_free(p);
  return rc;
}

void probe_free(struct probe *p) {
  if (!p)
    return;
  collector_free(p->collector);
  settings_done(&p->settings);
  free(p->early);
  other_plugins_done(&p->others);
  free(p);
}

int probe_find_places(const char *config, struct probe_places *ret,
                      struct config_error *reason) {
  struct probe p = {.config = find_config(config)};
  int rc;

  if (!p.config)
    return config_error_set(reason, "there is no %s: expected -C FILE",
                            default_configs[0]);
  settings_init(&p.settings);
  rc = read_config(&p, reason);
  if (rc == 0 && !p.settings.state_history)
    rc = config_error_set(reason, "StateHistory is not set in %s",
                          QUOTED(p.config));
  if (rc == 0) {
    *ret =
        (struct probe_places){p.settings.state_file, p.settings.state_history};
    p.settings.state_file = p.settings.state_history = NULL;
  }
  settings_done(&p.settings);
  free(p.early);
  return rc;
}

void probe_log_hints(const struct probe *p, const bool *is_idle,
                     const char *unknown) {
  hints_log(&p->settings, is_idle,
            collector_results(p->collector)->averages_mapcounts);
  if (unknown)
    hints_log_text(unknown);
}

/* ---- cycles ---- */

int probe_refresh(struct probe *p, char **ret_text, size_t *ret_len,
                  struct config_error *reason) {
  int rc = collector_cycle(p->collector);

  log_after_cycle(&p->log, collector_results(p->collector), &p->settings, rc);
  if (rc < 0) {
    config_error_format(reason, "the processes cannot be read: %s",
                        strerror(-rc));
    return rc;
  }
  rc = collector_snapshot(p->collector, ret_text, ret_len);
  if (rc < 0)
    config_error_format(reason, "no snapshot can be made: %s", strerror(-rc));
  return rc;
}

static const char *why_no_mappings(int rc) {
  switch (-rc) {
  case ESRCH:
    return "the process has ended";
  case EACCES:
    return "the kernel does not allow it";
  case ETIMEDOUT:
    return "reading them hangs; it is tried again later";
  default:
    return strerror(-rc);
  }
}

int probe_close_up(struct probe *p, uint32_t pid, char **ret_text,
                   size_t *ret_len, struct config_error *reason) {
  int rc = collector_close_up(p->collector, pid, ret_text, ret_len);

  if (rc < 0)
    config_error_format(reason, "the mappings cannot be read: %s",
                        why_no_mappings(rc));
  return rc;
}

void probe_set_time(const struct probe *p, double *ret) {
  if (p->captured > 0)
    *ret = p->captured;
}
