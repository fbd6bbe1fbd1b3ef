#include <smaps/rollup.h>

#include <errno.h>
#include <string.h>

#define KIB UINT64_C(1024)

/* sizeof counts the NUL where the colon will be. */
#define KEY(name)                                                              \
  { name ":", sizeof(name) }

/* In the order in which 6.18 prints them. */
static const struct span keys[ROLLUP_FIELDS] = {
    [ROLLUP_RSS] = KEY("Rss"),
    [ROLLUP_PSS] = KEY("Pss"),
    [ROLLUP_PSS_DIRTY] = KEY("Pss_Dirty"),
    [ROLLUP_PSS_ANON] = KEY("Pss_Anon"),
    [ROLLUP_PSS_FILE] = KEY("Pss_File"),
    [ROLLUP_PSS_SHMEM] = KEY("Pss_Shmem"),
    [ROLLUP_SHARED_CLEAN] = KEY("Shared_Clean"),
    [ROLLUP_SHARED_DIRTY] = KEY("Shared_Dirty"),
    [ROLLUP_PRIVATE_CLEAN] = KEY("Private_Clean"),
    [ROLLUP_PRIVATE_DIRTY] = KEY("Private_Dirty"),
    [ROLLUP_REFERENCED] = KEY("Referenced"),
    [ROLLUP_ANONYMOUS] = KEY("Anonymous"),
    [ROLLUP_KSM] = KEY("KSM"),
    [ROLLUP_LAZY_FREE] = KEY("LazyFree"),
    [ROLLUP_ANON_HUGE_PAGES] = KEY("AnonHugePages"),
    [ROLLUP_SHMEM_PMD_MAPPED] = KEY("ShmemPmdMapped"),
    [ROLLUP_FILE_PMD_MAPPED] = KEY("FilePmdMapped"),
    [ROLLUP_SHARED_HUGETLB] = KEY("Shared_Hugetlb"),
    [ROLLUP_PRIVATE_HUGETLB] = KEY("Private_Hugetlb"),
    [ROLLUP_SWAP] = KEY("Swap"),
    [ROLLUP_SWAP_PSS] = KEY("SwapPss"),
    [ROLLUP_LOCKED] = KEY("Locked"),
};

static const uint32_t needed =
    1 << ROLLUP_RSS | 1 << ROLLUP_PSS | 1 << ROLLUP_SHARED_CLEAN |
    1 << ROLLUP_SHARED_DIRTY | 1 << ROLLUP_PRIVATE_CLEAN |
    1 << ROLLUP_PRIVATE_DIRTY;

/* scan_word() for words whose length is known: they come twice a line, and a
 * parse would take half as long again. */
static bool take_span(struct scan *s, const struct span *word) {
  if ((size_t)(s->end - s->at) < word->len || *s->at != *word->text ||
      memcmp(s->at, word->text, word->len) != 0)
    return false;
  s->at += word->len;
  return true;
}

static unsigned behind(unsigned field) {
  return field + 1 < ROLLUP_FIELDS ? field + 1 : 0;
}

/*
 * Takes the key of a field. We start with the field behind the last one: as
 * long as the kernel keeps to our order, the first try is the right one.
 */
static bool take_key(struct scan *s, unsigned *field) {
  unsigned next = *field;

  do {
    next = behind(next);
    if (take_span(s, &keys[next])) {
      *field = next;
      return true;
    }
  } while (next != *field);
  return false;
}

static bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool take_address(struct scan *s, uint64_t *ret) {
  const char *start = s->at;

  *ret = 0;
  for (; !scan_is_done(s) && is_hex_digit(*s->at); s->at++)
    *ret = *ret << 4 |
           (unsigned)(*s->at <= '9' ? *s->at - '0' : *s->at - 'a' + 10);
  return s->at > start && s->at - start <= 16;
}

/* Everything up to the next blank. */
static struct span take_item(struct scan *s) {
  const char *start = s->at;

  while (!scan_is_done(s) && *s->at != ' ' && *s->at != '\n')
    s->at++;
  return (struct span){start, (size_t)(s->at - start)};
}

/* Permissions, then offset, device and inode, which are nothing to us. */
static bool take_mapping(struct scan *s, struct rollup_line *line) {
  if (!take_address(s, &line->start) || !scan_char(s, '-') ||
      !take_address(s, &line->end) || !scan_char(s, ' '))
    return false;
  line->permissions = take_item(s);
  for (int i = 0; i < 3; i++) {
    scan_skip_blanks(s);
    take_item(s);
  }
  scan_skip_blanks(s);
  return line->end >= line->start && scan_line(s, &line->name);
}

/*
 * 561d761ad000-7ffe85cca000 ---p 00000000 00:00 0                    [rollup]
 * Rss:                1640 kB
 * Pss:                 531 kB
 * …
 * Locked:                0 kB
 *
 * A smaps has such a header for every mapping, with lines that the rollup has
 * not: Size, KernelPageSize, VmFlags … A key starts with a capital and an
 * address with none. No process can add a line: in the path of a mapping the
 * kernel escapes the newline, and the name of an anonymous one cannot hold it.
 */
bool rollup_line_next(struct scan *s, struct rollup_line *line) {
  struct span skipped;

  if (is_hex_digit(*s->at)) {
    line->kind = ROLLUP_LINE_MAPPING;
    line->field = ROLLUP_FIELDS - 1; /* Rss is what comes next */
    return take_mapping(s, line);
  }
  if (take_key(s, &line->field)) {
    line->kind = ROLLUP_LINE_FIELD;
    return scan_kb(s, &line->bytes) && scan_char(s, '\n');
  }
  line->kind = ROLLUP_LINE_OTHER;
  return *s->at >= 'A' && *s->at <= 'Z' && scan_line(s, &skipped);
}

/* Whether what we rely on is there and agrees as the kernel has it agree. */
bool rollup_is_consistent(const struct rollup *r) {
  static const enum rollup_field parts[] = {
      ROLLUP_SHARED_CLEAN, ROLLUP_SHARED_DIRTY, ROLLUP_PRIVATE_CLEAN,
      ROLLUP_PRIVATE_DIRTY};
  const uint64_t slack = sizeof(parts) / sizeof(parts[0]) * KIB;
  uint64_t rss = r->bytes[ROLLUP_RSS], sum = 0;

  if ((r->known & needed) != needed || r->bytes[ROLLUP_PSS] > rss)
    return false;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    if (__builtin_add_overflow(sum, r->bytes[parts[i]], &sum))
      return false;
  return sum > rss ? sum - rss <= slack : rss - sum <= slack;
}

int rollup_parse(const char *text, size_t len, struct rollup *ret) {
  struct scan s = scan_begin(text, len);
  struct rollup total = {0};
  struct rollup_line line = {0};

  if (len == 0 || text[len - 1] != '\n') /* not the whole of it */
    return -EBADMSG;
  while (!scan_is_done(&s)) {
    if (!rollup_line_next(&s, &line))
      return -EBADMSG;
    if (line.kind != ROLLUP_LINE_FIELD)
      continue;
    if (rollup_has(&total, line.field))
      return -EBADMSG;
    total.known |= 1u << line.field;
    total.bytes[line.field] = line.bytes;
  }
  if (!rollup_is_consistent(&total))
    return -EBADMSG;
  *ret = total;
  return 0;
}

bool rollup_add_line(struct rollup *sum, const struct rollup_line *line) {
  uint64_t *bytes = &sum->bytes[line->field];

  sum->known |= 1u << line->field;
  return !__builtin_add_overflow(*bytes, line->bytes, bytes);
}

static bool add_line(struct rollup_sum *sum, const struct rollup_line *line) {
  sum->vmas += line->kind == ROLLUP_LINE_MAPPING;
  return line->kind != ROLLUP_LINE_FIELD || rollup_add_line(&sum->total, line);
}

size_t rollup_sum_feed(struct rollup_sum *sum, const char *text, size_t len) {
  const char *newline = memrchr(text, '\n', len);
  size_t taken = newline ? (size_t)(newline - text) + 1 : 0;
  struct scan s = scan_begin(text, taken);
  struct rollup_line line = {0};

  while (!sum->is_bad && !scan_is_done(&s))
    sum->is_bad = !rollup_line_next(&s, &line) || !add_line(sum, &line);
  return taken;
}

int rollup_sum_finish(const struct rollup_sum *sum, struct rollup *ret) {
  if (sum->is_bad || !rollup_is_consistent(&sum->total))
    return -EBADMSG;
  *ret = sum->total;
  return 0;
}
