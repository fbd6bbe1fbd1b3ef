#include "config_capture.h"

#include <ctype.h>
#include <strings.h>

static unsigned find_severity(const char *word) {
  static const struct {
    const char *word;
    enum severity severity;
  } words[] = {{"okay", SEVERITY_OKAY},
               {"warning", SEVERITY_WARNING},
               {"failure", SEVERITY_FAILURE}};

  for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (strcasecmp(words[i].word, word) == 0)
      return words[i].severity;
  return 0;
}

static int apply_on_notification(struct scope *scope,
                                 const oconfig_item_t *item) {
  unsigned severities = 0;

  for (int i = 0; i < item->values_num; i++) {
    unsigned found = item->values[i].type == OCONFIG_TYPE_STRING
                         ? find_severity(item->values[i].value.string)
                         : 0;

    if (!found)
      return config_error_set(&scope->reason,
                              "expected \"okay\", \"warning\" or "
                              "\"failure\"");
    severities |= found;
  }
  if (!severities)
    return config_error_set(&scope->reason,
                            "expected at least one string: "
                            "\"okay\", \"warning\" or \"failure\"");
  scope->settings->capture.severities = severities;
  return 0;
}

/* Parses "64", "64K", "64M" or "64G", in powers of 1,024. */
static bool parse_size(const char *text, uint64_t *ret) {
  static const char units[] = "KMG";
  struct cursor s = cursor_begin(text, strlen(text));
  uint64_t value;
  const char *unit;

  if (!parse_u64(&s, &value))
    return false;
  if (!cursor_is_done(&s)) {
    unit = strchr(units, toupper((unsigned char)*s.at));
    if (!unit || s.at + 1 != s.end ||
        __builtin_mul_overflow(value, UINT64_C(1024) << 10 * (unit - units),
                               &value))
      return false;
  }
  *ret = value;
  return true;
}

static int apply_max_bytes(struct scope *scope, const oconfig_item_t *item) {
  const uint64_t least = 64 << 10, most = UINT64_C(1) << 40;
  const oconfig_value_t *v = item->values;
  uint64_t bytes = 0;

  if (item->values_num == 1 && v->type == OCONFIG_TYPE_NUMBER &&
      v->value.number >= 0 && v->value.number <= (double)most)
    bytes = (uint64_t)v->value.number;
  else if (item->values_num != 1 || v->type != OCONFIG_TYPE_STRING ||
           !parse_size(v->value.string, &bytes))
    bytes = 0;
  if (bytes < least || bytes > most)
    return config_error_set(&scope->reason,
                            "expected a number of bytes from 64K to "
                            "1024G, such as \"64M\"");
  scope->settings->capture.max_bytes = bytes;
  return 0;
}

const struct option capture_options[] = {
    {"Directory", .set = settings_set_capture_directory},
    {"OnNotification", .apply = apply_on_notification},
    COUNT("TopProcesses", settings, capture.top_processes, 10000),
    COUNT("TopMappings", settings, capture.top_mappings, 10000),
    SECONDS("Cooldown", settings, capture.cooldown_ns, 0, 604800),
    COUNT("MaxFiles", settings, capture.max_files, 100000),
    {"MaxBytes", .apply = apply_max_bytes},
    CHOICE("CommandLines", settings, capture.command_lines),
    {.name = NULL}};
