/* SPDX-License-Identifier: MIT */
/* /proc/PID/stat, whose second field the process itself can set. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/stat.h"

/* The name is the text between the first " (" and the last ')': another name
 * does not change the other fields. */
static void require_name_has_no_say(const char *text, size_t len,
                                    const struct stat_sample *s) {
  static const char name[] = ") R 1 (\n) ";
  const char *open = memchr(text, '(', len), *close = memrchr(text, ')', len);
  size_t before = (size_t)(open + 1 - text);
  size_t behind = len - (size_t)(close - text);
  char *other = malloc(before + strlen(name) + behind);
  struct stat_sample t;

  memcpy(other, text, before);
  memcpy(other + before, name, strlen(name));
  memcpy(other + before + strlen(name), close, behind);
  require(stat_parse(other, before + strlen(name) + behind, &t) == 0);
  require(strcmp(t.comm, name) == 0);
  require(t.ppid == s->ppid && t.state == s->state);
  require(t.flags == s->flags && t.minor_faults == s->minor_faults);
  require(t.threads == s->threads && t.starttime_ticks == s->starttime_ticks);
  require(t.start_code == s->start_code && t.arg_start == s->arg_start);
  require(t.start_stack == s->start_stack);
  free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = fuzz_copy(data, size);
  struct stat_sample s;
  int rc;

  fuzz_taint(&s, sizeof(s));
  rc = stat_parse(text, size, &s);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0) {
    fuzz_require_untouched(&s, sizeof(s));
  } else {
    require(strlen(s.comm) < sizeof(s.comm));
    require(text[size - 1] == '\n');
    require(!stat_has_addresses(&s) || s.start_code > 1);
    stat_is_dead(&s);
    stat_is_kernel_thread(&s);
    require_name_has_no_say(text, size, &s);
  }
  free(text);
  return 0;
}
