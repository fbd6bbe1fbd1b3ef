/* Configurations, as trees of the daemon. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "stub_daemon.h"

#define CHILDREN_MAX 6
#define DEPTH_MAX 3

/* The characters that the daemon's parser accepts in a key. */
static const char *const keys[] = {"Process",     "ProcessMatch",
                                   "Group",       "Ignore",
                                   "Other",       "MaxGroups",
                                   "Report",      "ValuesAbsolute",
                                   "ProcRoot",    "Refresh",
                                   "ReadBudget",  "MaxAge",
                                   "MaxLockHold", "Children",
                                   "Continue",    "ValuesPercentage",
                                   "Comm",        "CommMatch",
                                   "CommandLine", "CommandLineMatch",
                                   "Executable",  "User",
                                   "Unit",        "Slice",
                                   "Container",   "ExecutableMatch",
                                   "UserMatch",   "PidFile",
                                   "group",       "comMMatch",
                                   "Grup",        "Containers"};

static const char *const words[] = {"default", "detail",  "pss",     "adaptive",
                                    "always",  "never",   "%{unit}", "x-%{1}",
                                    "^(a+)$",  "*",       "/proc",   "g%%",
                                    "a[",      "%{comm}", "true",    "/"};

/* One of our words or any string; without our words nothing would be accepted.
 */
static char *new_string(struct fuzz_bytes *b) {
  uint8_t choice = fuzz_byte(b);
  char *text;

  if (choice < 2 * sizeof(words) / sizeof(*words))
    return strdup(words[choice / 2]);
  text = fuzz_string(b);
  /* See fuzz_rule.c. No paths of this machine. */
  for (char *p = text; *p; p++)
    if (*p == '{' && p > text && p[-1] != '%')
      *p = '_';
  if (*text == '/')
    *text = '_';
  return text;
}

static void fill_value(struct fuzz_bytes *b, oconfig_value_t *v) {
  uint8_t kind = fuzz_byte(b);

  *v = (oconfig_value_t){.type = OCONFIG_TYPE_STRING};
  if (kind < 160) {
    v->value.string = new_string(b);
  } else if (kind < 220) {
    static const double odd[] = {0, -1, 0.5, 1e300, -1e300, 1 / 0.0, 0 / 0.0};

    v->type = OCONFIG_TYPE_NUMBER;
    v->value.number = kind < 220 - 7 ? fuzz_byte(b) : odd[kind - 213];
  } else {
    v->type = OCONFIG_TYPE_BOOLEAN;
    v->value.boolean = kind & 1;
  }
}

static void fill(struct fuzz_bytes *b, oconfig_item_t *item, const char *key,
                 int depth) {
  item->key = strdup(key);
  item->values_num = fuzz_byte(b) % 4;
  item->values = calloc(4, sizeof(*item->values));
  for (int i = 0; i < item->values_num; i++)
    fill_value(b, &item->values[i]);
  item->children_num = depth < DEPTH_MAX ? fuzz_byte(b) % CHILDREN_MAX : 0;
  item->children = calloc(CHILDREN_MAX, sizeof(*item->children));
  for (int i = 0; i < item->children_num; i++)
    fill(b, &item->children[i],
         keys[fuzz_byte(b) % (sizeof(keys) / sizeof(*keys))], depth + 1);
}

static void empty(oconfig_item_t *item) {
  for (int i = 0; i < item->children_num; i++)
    empty(&item->children[i]);
  for (int i = 0; i < item->values_num; i++)
    if (item->values[i].type == OCONFIG_TYPE_STRING)
      free(item->values[i].value.string);
  free(item->children);
  free(item->values);
  free(item->key);
}

/* Each mistake logs one line, a correct configuration none but notices. */
static void require_log(int rc) {
  bool has_error = false;

  for (size_t i = 0; i < stub.n_logs; i++) {
    require(fuzz_is_printable(stub.logs[i]));
    if (stub.levels[i] == LOG_NOTICE)
      continue;
    require(stub.levels[i] == LOG_ERR);
    require(strstr(stub.logs[i], "expected") != NULL);
    has_error = true;
  }
  require(has_error == (rc != 0));
}

static void require_finished(const struct settings *s) {
  require(s->proc_root && s->n_rules > 0);
  require(s->max_groups >= 1 && s->max_groups <= SETTINGS_MAX_GROUPS_LIMIT);
  for (size_t i = 0; i < s->n_rules; i++) {
    require(s->rules[i].report.metrics && s->rules[i].report.absolute);
    require(s->rules[i].policy.refresh && s->rules[i].policy.max_age_ns);
    require(s->rules[i].n_selectors > 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_bytes b = {data, size};
  oconfig_item_t block = {.key = NULL};
  struct settings settings;
  int rc = 0;

  settings_init(&settings);
  for (int i = 0; i < 2 && rc == 0; i++) {
    stub_clear();
    fill(&b, &block, "Plugin", 0);
    rc = config_add_block(&settings, &block);
    require_log(rc);
    empty(&block);
  }
  if (rc == 0 && settings_finish(&settings) == 0)
    require_finished(&settings);
  settings_done(&settings);
  return 0;
}
