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

static int load_cycle(struct probe *p, struct document *ret,
                      struct config_error *reason) {
  char *text;
  size_t len;
  int rc = probe_cycle(p, reason);

  if (rc == 0)
    rc = probe_snapshot(p, &text, &len, reason);
  if (rc < 0)
    return rc;
  rc = load_document_text(text, len, ret, reason);
  free(text);
  return rc;
}

int live_probe(const struct options *o, uint64_t interval_ns,
               struct probe **ret, struct config_error *reason) {
  bool is_check = o->command == COMMAND_CHECK;
  const struct probe_setup setup = {.config = o->config,
                                    .needs_config = is_check,
                                    .interval_ns = interval_ns,
                                    .read_budget_percent =
                                        is_check ? 0 : READ_BUDGET_PERCENT};

  return probe_new(&setup, ret, reason);
}

int live_load(const struct options *o, struct document *ret,
              struct config_error *reason) {
  struct probe *p = NULL;
  int rc = live_probe(o, INTERVAL_NS, &p, reason);

  if (rc)
    return rc;
  if (o->command == COMMAND_CHECK)
    tell_if_default(p);
  rc = load_cycle(p, ret, reason);
  probe_free(p);
  return rc;
}
