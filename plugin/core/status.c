#include <smaps/status.h>

#include <errno.h>

/* "real effective saved fs", parted by tabs. */
static bool take_effective(struct scan *s, uint32_t *ret) {
  uint32_t ignored;

  return scan_u32(s, &ignored) && scan_char(s, '\t') && scan_u32(s, ret) &&
         scan_char(s, '\t') && scan_u32(s, &ignored) && scan_char(s, '\t') &&
         scan_u32(s, &ignored);
}

static bool take_hex_digit(struct scan *s, unsigned *ret) {
  char c = scan_is_done(s) ? '\0' : *s->at;

  if (c >= '0' && c <= '9')
    *ret = (unsigned)(c - '0');
  else if (c >= 'a' && c <= 'f')
    *ret = (unsigned)(c - 'a') + 10;
  else
    return false;
  s->at++;
  return true;
}

/* Capabilities are 16 digits of hexadecimal on every kernel since 2.6.25. */
static bool take_mask(struct scan *s, uint64_t *ret) {
  unsigned digit;

  *ret = 0;
  for (int i = 0; i < 16; i++) {
    if (!take_hex_digit(s, &digit))
      return false;
    *ret = *ret << 4 | digit;
  }
  return true;
}

static bool take_value(struct scan *s, enum status_known key,
                       struct status_sample *ret) {
  scan_skip_blanks(s);
  switch (key) {
  case STATUS_UID:
    return take_effective(s, &ret->uid_effective);
  case STATUS_THREADS:
    return scan_u32(s, &ret->threads);
  case STATUS_VM_SWAP:
    return scan_kb(s, &ret->vm_swap_bytes);
  case STATUS_VM_PTE:
    return scan_kb(s, &ret->vm_pte_bytes);
  case STATUS_CAP_EFF:
    return take_mask(s, &ret->cap_effective);
  case STATUS_VOLUNTARY:
    return scan_u64(s, &ret->voluntary_switches);
  case STATUS_INVOLUNTARY:
    return scan_u64(s, &ret->involuntary_switches);
  }
  return false;
}

/* The key the cursor is at, taken; 0 for one that we do not know. */
static enum status_known take_key(struct scan *s) {
  static const struct {
    const char *name;
    enum status_known key;
  } known[] = {
      {"Uid:", STATUS_UID},
      {"VmPTE:", STATUS_VM_PTE},
      {"VmSwap:", STATUS_VM_SWAP},
      {"Threads:", STATUS_THREADS},
      {"CapEff:", STATUS_CAP_EFF},
      {"voluntary_ctxt_switches:", STATUS_VOLUNTARY},
      {"nonvoluntary_ctxt_switches:", STATUS_INVOLUNTARY},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (*s->at == known[i].name[0] && scan_word(s, known[i].name))
      return known[i].key;
  return 0;
}

/*
 * Name:	cat
 * …
 * Uid:	0	0	0	0
 * …
 * VmPTE:	      48 kB
 * VmSwap:	       0 kB
 * …
 * Threads:	1
 * …
 * CapEff:	000001fffeffffff
 * …
 * voluntary_ctxt_switches:	1
 * nonvoluntary_ctxt_switches:	0
 *
 * The kernel escapes a newline in the name, so no process can add a line. A
 * value without a newline behind it was cut short and would be another value.
 */
int status_parse(const char *text, size_t len, struct status_sample *ret) {
  struct scan s = scan_begin(text, len);
  struct status_sample sample = {0};
  struct span skipped;

  if (len > 0 && text[len - 1] != '\n') /* not the whole of it */
    return -EBADMSG;
  while (!scan_is_done(&s)) {
    enum status_known key = take_key(&s);

    if (!key) {
      scan_line(&s, &skipped);
      continue;
    }
    if (sample.known & key || !take_value(&s, key, &sample) ||
        !scan_char(&s, '\n'))
      return -EBADMSG;
    sample.known |= key;
  }
  *ret = sample;
  return 0;
}
