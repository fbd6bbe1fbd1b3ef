/* SPDX-License-Identifier: MIT */
/* Handles untrusted bytes: command lines, text for the log, and the attributes
 * of a process. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/cmdline.h"
#include "process/attributes.h"

static void look_at_cmdline(struct span text, size_t size) {
  char *ret = malloc(size);
  size_t len = cmdline_join(text.text, text.len, ret, size);

  require(len < size && len <= text.len && strlen(ret) == len);
  require(len == 0 || ret[len - 1] != ' ');
  for (size_t i = 0; i < len; i++)
    require(ret[i] == (text.text[i] ? text.text[i] : ' '));
  free(ret);
}

static void look_at_escape(struct span text, size_t size) {
  char *ret = malloc(size);

  require(escape_text(text.text, text.len, ret, size) == ret);
  require(strlen(ret) < size);
  require(fuzz_is_printable(ret) && !strchr(ret, '"'));
  for (char *p = ret; (p = strchr(p, '\\')); p++)
    require(p[1] == 'x' && strspn(p + 2, "0123456789abcdef") >= 2);
  free(ret);
}

static void require_values(const struct stored_attributes *stored,
                           const struct span value[ATTRIBUTES]) {
  struct attributes id = attributes_get(stored);

  for (int i = 0; i < ATTRIBUTES; i++) {
    require(!id.value[i] == !value[i].text);
    if (id.value[i])
      require(strlen(id.value[i]) == value[i].len &&
              memcmp(id.value[i], value[i].text, value[i].len) == 0);
  }
}

static void take_values(struct fuzz_bytes *b, struct span value[ATTRIBUTES]) {
  unsigned known = fuzz_byte(b);

  for (int i = 0; i < ATTRIBUTES; i++) {
    struct span text = fuzz_text(b, i == ATTRIBUTE_CGROUP ? 200 : 2);

    text.len = strnlen(text.text, text.len); /* the attributes contain no NUL */
    value[i] = text;
    if ((known >> i) & 1)
      continue;
    free((void *)(uintptr_t)text.text);
    value[i] = (struct span){.text = NULL};
  }
}

static void look_at_identity(struct fuzz_bytes *b) {
  struct stored_attributes stored = {0}, next = {0};
  struct span value[2][ATTRIBUTES];

  for (int i = 0; i < 2; i++) {
    int rc;

    take_values(b, value[i]);
    rc = attributes_renew(&stored, value[i], (uint32_t)i, &next);
    require(rc == ATTRIBUTES_CHANGED || (rc == -E2BIG));
    if (rc != ATTRIBUTES_CHANGED)
      continue;
    require_values(&next, value[i]);
    require(next.uid == (uint32_t)i);
    require(attributes_renew(&next, value[i], (uint32_t)i, NULL) == 0);
    attributes_done(&stored);
    stored = next;
  }
  attributes_done(&stored);
  for (int i = 0; i < 2 * ATTRIBUTES; i++)
    free((void *)(uintptr_t)value[i / ATTRIBUTES][i % ATTRIBUTES].text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct fuzz_bytes b = {data, size};
  size_t room = fuzz_byte(&b);
  struct span text = fuzz_text(&b, 16);

  look_at_cmdline(text, room + 1);
  look_at_escape(text, room + 8);
  look_at_identity(&b);
  free((void *)(uintptr_t)text.text);
  return 0;
}
