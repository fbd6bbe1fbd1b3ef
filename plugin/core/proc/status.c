/* SPDX-License-Identifier: MIT */
#include "proc/status.h"

#include <errno.h>

/* "real effective saved fs", separated by tabs. */
static bool parse_effective(struct cursor *s, uint32_t *ret) {
  uint32_t ignored;

  return parse_u32(s, &ignored) && parse_char(s, '\t') && parse_u32(s, ret) &&
         parse_char(s, '\t') && parse_u32(s, &ignored) && parse_char(s, '\t') &&
         parse_u32(s, &ignored);
}

/* "S (sleeping)" */
static bool parse_state(struct cursor *s, char *ret) {
  *ret = cursor_is_done(s) ? '\n' : *s->at;
  while (!cursor_is_done(s) && *s->at != '\n')
    s->at++;
  return *ret != '\n';
}

/* "outer … inner", separated by tabs, from the reader's namespace inwards. */
static bool parse_inner_pid(struct cursor *s, uint32_t *ret) {
  uint32_t outer, inner = 0;
  bool is_good = parse_u32(s, &outer);

  while (is_good && parse_char(s, '\t'))
    is_good = parse_u32(s, &inner);
  *ret = inner;
  return is_good;
}

static bool parse_value(struct cursor *s, enum status_known key,
                        struct status_sample *ret) {
  skip_blanks(s);
  switch (key) {
  case STATUS_STATE:
    return parse_state(s, &ret->state);
  case STATUS_PARENT:
    return parse_u32(s, &ret->parent_pid);
  case STATUS_NSPID:
    return parse_inner_pid(s, &ret->inner_pid);
  case STATUS_UID:
    return parse_effective(s, &ret->uid_effective);
  case STATUS_GID:
    return parse_effective(s, &ret->gid_effective);
  case STATUS_THREADS:
    return parse_u32(s, &ret->threads);
  case STATUS_VM_SWAP:
    return parse_kb(s, &ret->vm_swap_bytes);
  case STATUS_VM_PTE:
    return parse_kb(s, &ret->vm_pte_bytes);
  }
  return false;
}

/* Consumes a known key and returns it; 0 for an unknown key. */
static enum status_known parse_key(struct cursor *s) {
  static const struct {
    const char *name;
    enum status_known key;
  } known[] = {
      {"State:", STATUS_STATE},    {"PPid:", STATUS_PARENT},
      {"Uid:", STATUS_UID},        {"VmPTE:", STATUS_VM_PTE},
      {"VmSwap:", STATUS_VM_SWAP}, {"Threads:", STATUS_THREADS},
      {"NSpid:", STATUS_NSPID},    {"Gid:", STATUS_GID},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (*s->at == known[i].name[0] && parse_word(s, known[i].name))
      return known[i].key;
  return 0;
}

/*
 * Name:	cat
 * …
 * State:	R (running)
 * …
 * PPid:	1
 * …
 * Uid:	0	0	0	0
 * Gid:	0	0	0	0
 * …
 * NSpid:	6876	1
 * …
 * VmPTE:	      48 kB
 * VmSwap:	       0 kB
 * …
 * Threads:	1
 * …
 *
 * The kernel escapes a newline in the name, so no process can add a line. A
 * value without its newline was cut short and would be another value.
 */
int status_parse(const char *text, size_t len, struct status_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  struct status_sample sample = {0};
  struct span skipped;

  if (len > 0 && text[len - 1] != '\n') /* truncated */
    return -EBADMSG;
  while (!cursor_is_done(&s)) {
    enum status_known key = parse_key(&s);

    if (!key) {
      parse_line(&s, &skipped);
      continue;
    }
    if (sample.known & key || !parse_value(&s, key, &sample) ||
        !parse_char(&s, '\n'))
      return -EBADMSG;
    sample.known |= key;
  }
  *ret = sample;
  return 0;
}
