/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/mapping.h"

#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RPW (MAPPING_READ | MAPPING_WRITE | MAPPING_PRIVATE)

/* One mapping of a page, all of it private, with a name or without. */
#define FIELDS(rss)                                                            \
  "Rss: " #rss " kB\nPss: " #rss " kB\nShared_Clean: 0 kB\n"                   \
  "Shared_Dirty: 0 kB\nPrivate_Clean: 0 kB\nPrivate_Dirty: " #rss " kB\n"
#define AT(head, rss) head "\n" FIELDS(rss)
#define MAPPING(name, rss)                                                     \
  "1000-2000 rw-p 00000000 00:00 0 " name "\nSize: 4 kB\n" FIELDS(rss)

/* Feeds copies of at most `piece` bytes, each with the rest of the one before
 * in front of it, as a reader does. */
static void feed(struct mapping_table *t, const char *text, size_t len,
                 size_t piece) {
  size_t taken = 0, end = 0;

  while (end < len) {
    char *copy;

    end = len - end > piece ? end + piece : len;
    copy = fixture_copy(text + taken, end - taken);
    taken += mapping_table_feed(t, copy, end - taken);
    assert_true(taken <= end);
    assert_true(taken == 0 || text[taken - 1] == '\n');
    free(copy);
  }
}

static void feed_whole(struct mapping_table *t, const char *text, size_t len) {
  feed(t, text, len, len);
}

static int finish(struct mapping_table *t, struct rollup *ret) {
  int r;

  fixture_taint(ret, sizeof(*ret));
  r = mapping_table_finish(t, ret);
  if (r != 0)
    fixture_assert_untouched(ret, sizeof(*ret));
  return r;
}

static struct rollup take(struct mapping_table *t, const char *text,
                          size_t len) {
  struct rollup sum;

  feed_whole(t, text, len);
  assert_int_equal(finish(t, &sum), 0);
  return sum;
}

static int outcome_of(const char *text, size_t len) {
  struct mapping_table t = {0};
  struct rollup sum;
  int r;

  feed_whole(&t, text, len);
  r = finish(&t, &sum);
  mapping_table_done(&t);
  return r;
}

/* The mapping of that name, as it is before the table is ranked; NULL stands
 * for the rest. */
static const struct mapping *find(const struct mapping_table *t,
                                  const char *name) {
  for (size_t i = 1; name && i < t->n; i++)
    if (t->mappings[i].name_len == strlen(name) &&
        memcmp(t->mappings[i].name, name, strlen(name)) == 0)
      return &t->mappings[i];
  if (name)
    fail_msg("there is no mapping \"%s\"", name);
  return &t->mappings[0];
}

static uint64_t kb(const struct mapping *m, enum rollup_field f) {
  return m->sum.bytes[f] / KIB;
}

/* A mapping is: its size in pages, its Pss in kB or "?", mappings, processes,
 * permissions. */
static void assert_is(const struct mapping *m, const char *wanted) {
  char text[128], pss[24] = "?";

  if (rollup_has(&m->sum, ROLLUP_PSS))
    snprintf(pss, sizeof(pss), "%ju", (uintmax_t)kb(m, ROLLUP_PSS));
  else
    assert_int_equal(kb(m, ROLLUP_PSS), 0);
  snprintf(text, sizeof(text), "%ju pages, Pss %s, %ju of %ju, ",
           (uintmax_t)(m->size / PAGE), pss, (uintmax_t)m->vmas,
           (uintmax_t)m->processes);
  for (int i = 0; i < 5; i++)
    if (m->permissions & 1U << i)
      strncat(text, &"rwxps"[i], 1);
  assert_string_equal(text, wanted);
}

/* Ranks the mappings, and asserts which come first; `wanted` has a blank before
 * each. */
static void assert_ranked(struct mapping_table *t, size_t max,
                          const char *wanted) {
  const struct mapping *m;
  char text[96] = "";
  size_t n;

  mapping_table_rank(t, max, &m, &n);
  for (size_t i = 0; i < n; i++)
    snprintf(text + strlen(text), sizeof(text) - strlen(text), " %.*s",
             (int)m[i].name_len, m[i].name);
  assert_string_equal(text, wanted);
}

/* Asserts a sum over all mappings, ranked or not. */
static void assert_sum(const struct mapping_table *t,
                       const struct rollup *sum) {
  struct rollup total = {0};

  for (size_t i = 0; i < t->n; i++) {
    total.known |= t->mappings[i].sum.known;
    for (int f = 0; f < ROLLUP_FIELDS; f++)
      total.bytes[f] += t->mappings[i].sum.bytes[f];
  }
  assert_memory_equal(&total, sum, sizeof(total));
}

static void begin(struct mapping_table *t) { *t = (struct mapping_table){0}; }

TEST_OBJECT(struct mapping_table, begin, mapping_table_done)
#define TABLE_TEST(name) TEST_WITH(name, make, unmake, struct mapping_table *t)

/* --- a smaps ---------------------------------------------------------------*/

#define LIB_A(range) range " 00000000 fe:00 12    /lib/a b (deleted)"
#define VSYSCALL                                                               \
  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]"

/* Most are the beginning of those before them, and many share a slot. */
TABLE_TEST(any_number_of_names_of_any_length_is_found_again) {
  static const size_t large[] = {16384, 16383, 16385, 40000, 16382};
  static char name[40001], text[41000];
  const size_t n = LENGTH(large) + 999;

  for (int round = 0; round < 2; round++)
    for (size_t i = 0; i < n; i++) {
      size_t len = i < LENGTH(large) ? large[i] : n - i;

      memset(name, 'x', len);
      name[len] = '\0';
      feed_whole(t, text,
                 (size_t)snprintf(text, sizeof(text), MAPPING("%s", 4), name));
    }
  assert_int_equal(t->n, 1 + n);
  for (size_t i = 1; i < t->n; i++)
    assert_int_equal(t->mappings[i].vmas, 2);
  assert_int_equal(t->mappings[4].name_len, 40000);
  assert_int_equal(t->mappings[n].name_len, 1);
}

TEST(text_that_is_not_smaps_is_refused) {
  static const struct text_case cases[] = {
      {"no field", TEXT("1000-2000 rw-p 00000000 00:00 0 \n")},
      {"fields of nothing", TEXT(FIELDS(4))},
      {"a line of nothing", TEXT("Rss: 4 kB\n" MAPPING("", 4))},
      {"a number that is none", TEXT(MAPPING("", 4) "Swap: x kB\n")},
      {"a range backwards",
       TEXT("2000-1000 rw-p 00000000 00:00 0 \n" FIELDS(4))},
      {"parts beyond Rss", TEXT(MAPPING("", 4) "Shared_Clean: 5 kB\n")},
      {"one field missing",
       TEXT("1000-2000 rw-p 00000000 00:00 0 \nRss: 0 kB\nPss: 0 kB\n"
            "Shared_Clean: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 0 kB\n")},
      {"a sum beyond 64 bits in one name",
       TEXT(MAPPING("/a", 4) "Swap: 18014398509481983 kB\nSwap: 1 kB\n")},
      {"a sum beyond 64 bits over names",
       TEXT(MAPPING("/a", 4) "Swap: 18014398509481983 kB\n" MAPPING(
           "/b", 4) "Swap: 1 kB\n")},
  };

  assert_int_equal(/* the largest number */
                   outcome_of(
                       TEXT(MAPPING("/a", 4) "Swap: 18014398509481983 kB\n")),
                   0);
  for (size_t i = 0; i < LENGTH(cases); i++)
    if (outcome_of(cases[i].text, cases[i].len) != -EBADMSG)
      fail_msg("%s: taken", cases[i].name);
}

/* The next piece of memory is lacking. */
static bool is_scarce;

WRAPPED(void *, malloc, size_t size);
void *__wrap_malloc(size_t size) {
  bool fails = is_scarce;

  is_scarce = false;
  return fails ? NULL : __real_malloc(size);
}

TABLE_TEST(a_table_that_lacks_a_name_for_want_of_memory_is_refused) {
  struct rollup sum;

  is_scarce = true;
  mapping_table_feed(t, TEXT(MAPPING("/a", 4)) - 1);
  assert_int_equal(finish(t, &sum), -ENOMEM);
}

/* --- limits ----------------------------------------------------------------*/

/* Feeds `n` mappings, each of another name, which is filled up to `len`. */
static void feed_names(struct mapping_table *t, size_t n, size_t len) {
  char *name = malloc(len + 1), *text = malloc(len + 400);

  for (size_t i = 0; i < n; i++) {
    int printed;

    memset(name, 'x', len);
    name[len] = '\0';
    snprintf(name, len, "/%zu", i);
    name[strlen(name)] = '-';
    printed = snprintf(text, len + 400, MAPPING("%s", 4), name);
    feed_whole(t, text, (size_t)printed);
  }
  free(text);
  free(name);
}

TABLE_TEST(names_beyond_the_most_are_the_rest) {
  const size_t n = 20000;
  const struct mapping *rest;
  struct rollup sum;

  feed_names(t, n, 10);
  /* A name that there is already finds its place still. */
  sum = take(t, TEXT(MAPPING("/0-xxxxxxx", 4)));
  assert_int_equal(t->n, 1 + MAPPING_NAMES_MAX);
  rest = mapping_table_rest(t);
  assert_null(rest->name);
  assert_int_equal(rest->vmas, n - MAPPING_NAMES_MAX);
  assert_int_equal(rest->size, (n - MAPPING_NAMES_MAX) * 0x1000);
  assert_int_equal(kb(rest, ROLLUP_PSS), (n - MAPPING_NAMES_MAX) * 4);
  assert_int_equal(find(t, "/0-xxxxxxx")->vmas, 2);
  assert_sum(t, &sum);
  assert_int_equal(sum.bytes[ROLLUP_PSS], (n + 1) * 4 * KIB);
  assert_ranked(t, 2, " /0-xxxxxxx /1-xxxxxxx");
  assert_sum(t, &sum);
}

/* 256 names of 4,096 bytes are as many bytes as there may be. */
TABLE_TEST(names_beyond_the_bytes_are_the_rest) {
  feed_names(t, 300, 4096);
  assert_int_equal(t->n, 1 + 256);
  assert_int_equal(t->name_bytes, MAPPING_NAME_BYTES_MAX);
  assert_int_equal(mapping_table_rest(t)->vmas, 300 - 256);
}

/* --- adding and ranking ----------------------------------------------------*/

static void add(struct mapping_table *all, const char *text, size_t len) {
  struct mapping_table one = {0};

  take(&one, text, len);
  assert_int_equal(mapping_table_add(all, &one), 0);
  mapping_table_done(&one); /* nothing of it is in use any more */
}

TEST(processes_are_added_up_by_name) {
  struct mapping_table all = {0};

  add(&all, TEXT(MAPPING("/lib", 4) MAPPING("/lib", 4) MAPPING("", 1)));
  add(&all, TEXT(MAPPING(
                "/lib", 2) "1000-2000 r-xs 00000000 00:00 0 /own\n" FIELDS(3)));
  assert_int_equal(all.n, 4);
  assert_is(find(&all, "/lib"), "3 pages, Pss 10, 3 of 2, rwp");
  assert_is(find(&all, "/own"), "1 pages, Pss 3, 1 of 1, rxs");
  assert_is(find(&all, "[anon]"), "1 pages, Pss 1, 1 of 1, rwp");
  assert_null(mapping_table_rest(&all));
  mapping_table_done(&all);
}

TEST(the_rest_of_a_process_is_in_the_rest_of_all) {
  struct mapping_table all = {0}, many = {0};

  feed_names(&many, MAPPING_NAMES_MAX + 5, 10);
  assert_int_equal(mapping_table_add(&all, &many), 0);
  mapping_table_done(&many);
  assert_int_equal(mapping_table_rest(&all)->vmas, 5);
  /* Now it is full, and what another maps has no place. */
  add(&all, TEXT(MAPPING("/new", 8)));
  assert_int_equal(mapping_table_rest(&all)->vmas, 6);
  assert_int_equal(kb(mapping_table_rest(&all), ROLLUP_PSS), 5 * 4 + 8);
  mapping_table_done(&all);
}

TEST(the_largest_come_first_and_the_others_are_the_rest) {
  static const char order[] = " /c /z /a /b /d";
  static const char text[] = MAPPING("/b", 4) MAPPING("/d", 1) MAPPING("/c", 8)
      MAPPING("/a", 4) "1000-4000 rw-p 00000000 00:00 0 /z\n" FIELDS(4);

  for (size_t max = 0; max <= 6; max++) {
    size_t n = max < 5 ? max : 5;
    struct mapping_table t = {0};
    struct rollup sum = take(&t, TEXT(text));
    char wanted[sizeof(order)];

    snprintf(wanted, sizeof(wanted), "%.*s", (int)(3 * n), order);
    assert_ranked(&t, max, wanted);
    assert_int_equal(mapping_table_rest(&t) == NULL, max >= 5);
    if (max < 5)
      assert_int_equal(mapping_table_rest(&t)->vmas, 5 - max);
    assert_sum(&t, &sum);
    mapping_table_done(&t);
  }
}

/* --- of a maps -------------------------------------------------------------*/

static const char maps[] =
    "55d0c8f7d000-55d0c8f96000 rw-p 00000000 00:00 0                  [heap]\n"
    "7f0000000000-7f0000100000 r-xp 00000000 08:01 7                  /lib/x\n"
    "7f0000100000-7f0000101000 rw-p 00100000 08:01 7                  /lib/x\n"
    "7f0000200000-7f0000201000 rw-s 00000000 00:00 0 \n";

static void feed_maps(struct mapping_table *t) {
  feed(t, TEXT(maps), 60);
  assert_int_equal(t->error, 0);
}

/* In whichever order they come, and in the rest as well. */
TEST(a_sum_with_a_maps_in_it_is_not_known) {
  for (int turn = 0; turn < 3; turn++) {
    struct mapping_table all = {0}, one = {0};

    feed_maps(&one);
    for (int i = 0; i < 3; i++)
      if (i == turn)
        assert_int_equal(mapping_table_add(&all, &one), 0);
      else
        add(&all, TEXT(MAPPING("/lib/x", 8) MAPPING("/own", 2)));
    mapping_table_done(&one);
    assert_is(find(&all, "/lib/x"), "259 pages, Pss ?, 4 of 3, rwxp");
    assert_int_equal(kb(find(&all, "/own"), ROLLUP_PSS), 4);
    /* Size decides without Pss. */
    assert_ranked(&all, 2, " /lib/x [heap]");
    assert_int_equal(mapping_table_rest(&all)->sum.known, 0);
    assert_int_equal(mapping_table_rest(&all)->size, 0x1000 + 2 * 0x1000);
    mapping_table_done(&all);
  }
}

/* Samples know some of the fields; the sum knows what all of its parts do. */
TEST(a_sum_with_a_sample_in_it_has_the_fields_of_both) {
  for (int turn = 0; turn < 3; turn++) {
    struct mapping_table all = {0}, one = {0};
    struct mapping *heap;
    const struct mapping *m;

    feed_maps(&one);
    heap = &one.mappings[1];
    heap->sum.known = 1U << ROLLUP_RSS;
    heap->sum.bytes[ROLLUP_RSS] = 4 * KIB;
    heap->is_sampled = true;
    heap->pages_sampled = 5;
    heap->pss_error = 7;
    for (int i = 0; i < 3; i++)
      if (i == turn)
        add(&all, TEXT(MAPPING("[heap]", 8)));
      else
        assert_int_equal(mapping_table_add(&all, &one), 0);
    mapping_table_done(&one);
    m = find(&all, "[heap]");
    assert_int_equal(m->sum.known, 1U << ROLLUP_RSS);
    assert_int_equal(kb(m, ROLLUP_RSS), 16);
    assert_int_equal(kb(m, ROLLUP_PSS), 0);
    assert_true(m->is_sampled);
    assert_int_equal(m->pages_sampled, 10);
    assert_int_equal(m->pss_error, 14);
    mapping_table_done(&all);
  }
}
