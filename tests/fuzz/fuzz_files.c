/* SPDX-License-Identifier: MIT */
/* Parses the small files: statm, status and meminfo. */
#include "fuzz.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc/meminfo.h"
#include "proc/statm.h"
#include "proc/status.h"

static void require_outcome(int rc, const void *ret, size_t size) {
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(ret, size);
}

/* Values printed in the kernel's format are parsed to the same values. */
static void look_at_statm(const char *text, size_t len) {
  struct statm_sample s, t;
  char printed[256];
  int n, rc;

  fuzz_taint(&s, sizeof(s));
  rc = statm_parse(text, len, &s);
  require_outcome(rc, &s, sizeof(s));
  if (rc != 0)
    return;
  require(s.shared_pages <= s.resident_pages);
  require(statm_has_mm(&s) == (s.size_pages > 0));
  n = snprintf(printed, sizeof(printed),
               "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " 0 %" PRIu64
               " 0\n",
               s.size_pages, s.resident_pages, s.shared_pages, s.text_pages,
               s.data_pages);
  require(statm_parse(printed, (size_t)n, &t) == 0);
  require(memcmp(&s, &t, sizeof(s)) == 0);
}

/* Appends an unknown line to the text. */
static char *with_a_line(const char *text, size_t len, size_t *ret_len) {
  static const char line[] = "Unheard_of:\t7 kB\n";
  char *more = malloc(len + strlen(line));

  memcpy(more, text, len);
  memcpy(more + len, line, strlen(line));
  *ret_len = len + strlen(line);
  return more;
}

static void look_at_status(const char *text, size_t len) {
  struct status_sample s, t;
  size_t more_len;
  char *more;
  int rc;

  fuzz_taint(&s, sizeof(s));
  rc = status_parse(text, len, &s);
  require_outcome(rc, &s, sizeof(s));
  if (rc != 0)
    return;
  require(len == 0 || text[len - 1] == '\n');
  require((s.known & STATUS_UID) || s.uid_effective == 0);
  require((s.known & STATUS_VM_SWAP) || s.vm_swap_bytes == 0);
  more = with_a_line(text, len, &more_len);
  require(status_parse(more, more_len, &t) == 0);
  require(memcmp(&s, &t, sizeof(s)) == 0);
  free(more);
}

static void look_at_meminfo(const char *text, size_t len) {
  struct meminfo_sample s, t;
  size_t more_len;
  char *more;
  int rc;

  fuzz_taint(&s, sizeof(s));
  rc = meminfo_parse(text, len, &s);
  require_outcome(rc, &s, sizeof(s));
  if (rc != 0)
    return;
  require(s.mem_total_bytes > 0);
  if (text[len - 1] != '\n')
    return;
  more = with_a_line(text, len, &more_len);
  require(meminfo_parse(more, more_len, &t) == 0);
  require(memcmp(&s, &t, sizeof(s)) == 0);
  free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = fuzz_copy(data, size);

  look_at_statm(text, size);
  look_at_status(text, size);
  look_at_meminfo(text, size);
  free(text);
  return 0;
}
