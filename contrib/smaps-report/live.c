#include "live.h"

#include "load.h"
#include "probe.h"

#include <smaps/group_name.h>

#include <stdlib.h>
#include <string.h>

/* There is one interval for all readings: it is long, and may cost more. */
#define INTERVAL_NS (10 * UINT64_C(1000000000))
#define READ_BUDGET_PERCENT 10

/* A check of the wrong file, or of an Include that finds nothing, would look
 * like a good one. */
static void tell_if_default(const struct probe *p) {
  const char *config = probe_file_without_block(p);
  struct group_name shown;

  if (config)
    fprintf(stderr,
            "%s: there is no <Plugin smaps> in it or in the files that it "
            "includes: the rules are the defaults\n",
            escape_text(config, strlen(config), shown.text, GROUP_NAME_SIZE));
}

static int load_text(char *text, size_t len, struct document *ret,
                     struct config_error *reason) {
  FILE *file = fmemopen(text, len, "r");
  int rc;

  if (!file)
    return config_error_set(reason, "%s", strerror(errno));
  rc = load_document(file, ret, reason);
  fclose(file);
  return rc;
}

static int load_cycle(struct probe *p, struct document *ret,
                      struct config_error *reason) {
  char *text;
  size_t len;
  int rc = probe_cycle(p, reason);

  if (rc == 0)
    rc = probe_snapshot(p, &text, &len, reason);
  if (rc < 0)
    return rc;
  rc = load_text(text, len, ret, reason);
  free(text);
  return rc;
}

int live_load(const struct options *o, struct document *ret,
              struct config_error *reason) {
  bool is_check = o->command == COMMAND_CHECK;
  const struct probe_setup setup = {.config = o->config,
                                    .needs_config = is_check,
                                    .interval_ns = INTERVAL_NS,
                                    .read_budget_percent =
                                        is_check ? 0 : READ_BUDGET_PERCENT};
  struct probe *p = NULL;
  int rc = probe_new(&setup, &p, reason);

  if (rc)
    return rc;
  if (is_check)
    tell_if_default(p);
  rc = load_cycle(p, ret, reason);
  probe_free(p);
  return rc;
}
