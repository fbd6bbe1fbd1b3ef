#include "test.h"

#include "proc/mapping.h"

#include "fixture.h"
#include "scarce.h"

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

FIXTURE_FEEDER(mapping_table_feed, struct mapping_table)

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

static bool has_name(const struct mapping *m, const char *name) {
  return m->name_len == strlen(name) &&
         memcmp(m->name, name, strlen(name)) == 0;
}

/* Whether two tables that were fed alike came out alike. */
static bool is_equal(const struct mapping_table *a,
                     const struct mapping_table *b) {
  if (a->n != b->n)
    return false;
  for (size_t i = 0; i < a->n; i++) {
    struct mapping x = a->mappings[i], y = b->mappings[i];

    if (x.name_len != y.name_len ||
        (x.name_len && memcmp(x.name, y.name, x.name_len) != 0))
      return false;
    x.name = y.name = NULL;
    if (memcmp(&x, &y, sizeof(x)) != 0)
      return false;
  }
  return true;
}

/* Sums over all mappings, ranked or not. */
static struct rollup total_of(const struct mapping_table *t) {
  struct rollup total = {0};

  for (size_t i = 0; i < t->n; i++) {
    total.known |= t->mappings[i].sum.known;
    for (int f = 0; f < ROLLUP_FIELDS; f++)
      total.bytes[f] += t->mappings[i].sum.bytes[f];
  }
  return total;
}

static void begin(struct mapping_table *t) { *t = (struct mapping_table){0}; }

TEST_OBJECT(struct mapping_table, begin, mapping_table_done)
#define TABLE_TEST(name) TEST_WITH(name, make, unmake, struct mapping_table *t)

/* --- a smaps ---------------------------------------------------------------*/

TABLE_TEST(a_capture_is_summed_by_name) {
  struct span text = fixture_load("smaps-6.18");
  struct rollup sum, same;
  struct rollup_sum whole = {0};
  const struct mapping *m;
  uint64_t vmas = 0;

  feed_whole(t, text.text, text.len);
  assert_int_equal(finish(t, &sum), 0);
  rollup_sum_feed(&whole, text.text, text.len);
  assert_int_equal(rollup_sum_finish(&whole, &same), 0);
  assert_memory_equal(&sum, &same, sizeof(sum));
  for (size_t i = 0; i < t->n; i++)
    vmas += t->mappings[i].vmas;
  assert_int_equal(vmas, whole.vmas);
  m = find(t, "/usr/bin/demo");
  assert_true(m->vmas > 1);
  assert_int_equal(m->processes, 1);
  assert_int_equal(m->permissions, RPW | MAPPING_EXECUTE);
  assert_int_equal(kb(m, ROLLUP_SWAP), 0);
  assert_true(rollup_has(&m->sum, ROLLUP_SWAP_PSS));
  find(t, "[heap]");
  find(t, "[anon]");
  find(t, "[stack]");
}

#define LIB_A(range) range " 00000000 fe:00 12    /lib/a b (deleted)"
#define VSYSCALL                                                               \
  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]"

TABLE_TEST(mappings_of_the_same_name_are_merged) {
  static const char text[] = AT(LIB_A("1000-3000 r--p"), 4)
      AT(LIB_A("3000-4000 -wxs"), 2) AT("4000-5000 ---p 0 00:00 0 ", 1)
          AT("5000-7000 rw-p 0 00:00 0", 3) AT(VSYSCALL, 0);
  struct rollup sum;
  const struct mapping *m;

  feed_whole(t, TEXT(text));
  assert_int_equal(finish(t, &sum), 0);
  assert_int_equal(t->n, 4);
  m = find(t, "/lib/a b (deleted)");
  assert_int_equal(m->vmas, 2);
  assert_int_equal(m->size, 0x3000);
  assert_int_equal(kb(m, ROLLUP_RSS), 6);
  assert_int_equal(kb(m, ROLLUP_PRIVATE_DIRTY), 6);
  assert_int_equal(m->permissions, RPW | MAPPING_EXECUTE | MAPPING_SHARED);
  assert_false(rollup_has(&m->sum, ROLLUP_SWAP));
  m = find(t, "[anon]");
  assert_int_equal(m->vmas, 2);
  assert_int_equal(m->size, 0x3000);
  assert_int_equal(kb(m, ROLLUP_PSS), 4);
  assert_int_equal(m->permissions, RPW);
  m = find(t, "[vsyscall]");
  assert_int_equal(m->size, 0x1000);
  assert_int_equal(m->permissions, MAPPING_EXECUTE | MAPPING_PRIVATE);
  assert_null(mapping_table_rest(t));
  assert_int_equal(sum.bytes[ROLLUP_RSS], 10 * KIB);
}

TABLE_TEST(names_that_begin_alike_stay_apart) {
  struct rollup sum;

  feed_whole(t, TEXT(MAPPING("/a", 1) MAPPING("/ab", 2) MAPPING("/a", 4)
                         MAPPING("/b", 8) MAPPING("/\xff\x01", 16)));
  assert_int_equal(finish(t, &sum), 0);
  assert_int_equal(kb(find(t, "/a"), ROLLUP_PSS), 5);
  assert_int_equal(kb(find(t, "/ab"), ROLLUP_PSS), 2);
  assert_int_equal(kb(find(t, "/b"), ROLLUP_PSS), 8);
  assert_int_equal(kb(find(t, "/\xff\x01"), ROLLUP_PSS), 16);
}

/* Each is the beginning of those before it, and many share a slot. */
TABLE_TEST(any_number_of_names_is_found_again) {
  char name[1000];

  for (int round = 0; round < 2; round++)
    for (size_t len = sizeof(name) - 1; len > 0; len--) {
      char text[sizeof(name) + 400];

      memset(name, 'x', len);
      name[len] = '\0';
      feed_whole(t, text,
                 (size_t)snprintf(text, sizeof(text), MAPPING("%s", 4), name));
    }
  assert_int_equal(t->n, 1 + sizeof(name) - 1);
  for (size_t i = 1; i < t->n; i++) {
    assert_int_equal(t->mappings[i].name_len, sizeof(name) - i);
    assert_int_equal(t->mappings[i].vmas, 2);
  }
}

TEST(pieces_of_any_size_come_out_alike) {
  struct span text = fixture_load("smaps-6.18");
  struct mapping_table whole = {0};
  struct rollup sum, same;

  feed_whole(&whole, text.text, text.len);
  assert_int_equal(finish(&whole, &sum), 0);
  for (size_t piece = 1; piece < text.len; piece += 1 + piece / 8) {
    struct mapping_table t = {0};

    feed(&t, text.text, text.len, piece);
    assert_int_equal(finish(&t, &same), 0);
    if (!is_equal(&t, &whole))
      fail_msg("pieces of %zu bytes come out otherwise", piece);
    mapping_table_done(&t);
  }
  mapping_table_done(&whole);
}

TEST(two_pieces_come_out_alike_wherever_they_are_cut) {
  static const char text[] =
      MAPPING("/usr/lib/one", 4) MAPPING("", 8) MAPPING("/usr/lib/one", 12);
  struct mapping_table whole = {0};
  struct rollup sum, same;

  feed_whole(&whole, TEXT(text));
  assert_int_equal(finish(&whole, &sum), 0);
  for (size_t cut = 0; cut < sizeof(text); cut++) {
    struct mapping_table t = {0};
    char *copy = fixture_copy(text, cut);
    size_t taken = mapping_table_feed(&t, copy, cut);

    assert_true(taken <= cut);
    assert_null(memchr(text + taken, '\n', cut - taken));
    free(copy);
    feed_whole(&t, text + taken, sizeof(text) - 1 - taken);
    assert_int_equal(finish(&t, &same), 0);
    assert_true(is_equal(&t, &whole));
    mapping_table_done(&t);
  }
  mapping_table_done(&whole);
}

TEST(a_text_that_is_no_smaps_is_refused) {
  static const struct text_case cases[] = {
      {"nothing", TEXT("")},
      {"no field", TEXT("1000-2000 rw-p 00000000 00:00 0 \n")},
      {"fields of nothing", TEXT(FIELDS(4))},
      {"a line of nothing", TEXT("Rss: 4 kB\n" MAPPING("", 4))},
      {"a number that is none", TEXT(MAPPING("", 4) "Swap: x kB\n")},
      {"a range backwards",
       TEXT("2000-1000 rw-p 00000000 00:00 0 \n" FIELDS(4))},
      {"no range", TEXT("1000 rw-p 00000000 00:00 0 \n" FIELDS(4))},
      {"a line of its own", TEXT(MAPPING("", 4) "?\n")},
      {"a Pss above Rss", TEXT(MAPPING("", 4) "Pss: 1 kB\n")},
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

  for (size_t i = 0; i < LENGTH(cases); i++)
    if (outcome_of(cases[i].text, cases[i].len) != -EBADMSG)
      fail_msg("%s: taken", cases[i].name);
}

TEST(the_largest_numbers_are_taken) {
  assert_int_equal(
      outcome_of(TEXT(MAPPING("/a", 4) "Swap: 18014398509481983 kB\n")), 0);
}

TABLE_TEST(after_a_mistake_the_rest_is_parsed_and_dropped) {
  struct rollup sum;

  feed_whole(t, TEXT("?\n"));
  assert_int_equal(mapping_table_feed(t, TEXT(MAPPING("/a", 4) "Sw")),
                   sizeof(MAPPING("/a", 4)) - 1);
  assert_int_equal(t->n, 0);
  assert_int_equal(finish(t, &sum), -EBADMSG);
}

TEST(a_text_cut_short_gives_no_other_value) {
  static const char text[] = MAPPING("/a", 4);

  for (size_t cut = 0; cut + 1 < sizeof(text); cut++)
    assert_int_equal(outcome_of(text, cut), -EBADMSG);
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
  const struct mapping *rest, *ranked;
  struct rollup sum, total;
  size_t n_ranked;

  feed_names(t, n, 10);
  /* A name that there is already finds its place still. */
  feed_whole(t, TEXT(MAPPING("/0-xxxxxxx", 4)));
  assert_int_equal(finish(t, &sum), 0);
  assert_int_equal(t->n, 1 + MAPPING_NAMES_MAX);
  rest = mapping_table_rest(t);
  assert_non_null(rest);
  assert_null(rest->name);
  assert_int_equal(rest->vmas, n - MAPPING_NAMES_MAX);
  assert_int_equal(rest->size, (n - MAPPING_NAMES_MAX) * 0x1000);
  assert_int_equal(kb(rest, ROLLUP_PSS), (n - MAPPING_NAMES_MAX) * 4);
  assert_int_equal(find(t, "/0-xxxxxxx")->vmas, 2);
  total = total_of(t);
  assert_memory_equal(&total, &sum, sizeof(sum));
  assert_int_equal(sum.bytes[ROLLUP_PSS], (n + 1) * 4 * KIB);
  mapping_table_rank(t, 3, &ranked, &n_ranked);
  assert_int_equal(n_ranked, 3);
  assert_true(has_name(&ranked[0], "/0-xxxxxxx"));
  total = total_of(t);
  assert_memory_equal(&total, &sum, sizeof(sum));
  assert_int_equal(mapping_table_rest(t)->vmas, n + 1 - 2 - 1 - 1);
}

/* 256 names of 4,096 bytes are as many bytes as there may be. */
TABLE_TEST(names_beyond_the_bytes_are_the_rest) {
  const size_t fit = MAPPING_NAME_BYTES_MAX / 4096;
  struct rollup sum, total;

  feed_names(t, 1000, 4096);
  assert_int_equal(finish(t, &sum), 0);
  assert_int_equal(t->n, 1 + fit);
  assert_int_equal(t->name_bytes, MAPPING_NAME_BYTES_MAX);
  assert_int_equal(mapping_table_rest(t)->vmas, 1000 - fit);
  total = total_of(t);
  assert_memory_equal(&total, &sum, sizeof(sum));
}

/* Names that fill a block exactly, that are larger than one, and what comes
 * behind them. */
TABLE_TEST(names_of_any_length_are_kept_whole) {
  static const size_t lengths[] = {16384, 1, 16383, 16385, 40000, 16382, 2, 7};
  char *text = malloc(50000);

  for (size_t i = 0; i < LENGTH(lengths); i++) {
    char *name = malloc(lengths[i] + 1);
    int printed;

    memset(name, 'a' + (int)i, lengths[i]);
    name[lengths[i]] = '\0';
    printed = snprintf(text, 50000, MAPPING("%s", 4), name);
    feed_whole(t, text, (size_t)printed);
    free(name);
  }
  free(text);
  assert_int_equal(t->n, 1 + LENGTH(lengths));
  for (size_t i = 1; i < t->n; i++) {
    assert_int_equal(t->mappings[i].name_len, lengths[i - 1]);
    for (size_t j = 0; j < lengths[i - 1]; j++)
      if (t->mappings[i].name[j] != (char)('a' + (int)i - 1))
        fail_msg("byte %zu of name %zu is another", j, i);
  }
}

/* --- adding and ranking ----------------------------------------------------*/

static void add(struct mapping_table *all, const char *text, size_t len) {
  struct mapping_table one = {0};
  struct rollup sum;

  feed_whole(&one, text, len);
  assert_int_equal(finish(&one, &sum), 0);
  assert_int_equal(mapping_table_add(all, &one), 0);
  mapping_table_done(&one); /* nothing of it is in use any more */
}

TEST(processes_are_added_up_by_name) {
  struct mapping_table all = {0};
  const struct mapping *m;

  add(&all, TEXT(MAPPING("/lib", 4) MAPPING("/lib", 4) MAPPING("", 1)));
  add(&all, TEXT(MAPPING(
                "/lib", 2) "1000-2000 r-xs 00000000 00:00 0 /own\n" FIELDS(3)));
  assert_int_equal(all.n, 4);
  m = find(&all, "/lib");
  assert_int_equal(m->vmas, 3);
  assert_int_equal(m->processes, 2);
  assert_int_equal(m->size, 0x3000);
  assert_int_equal(kb(m, ROLLUP_PSS), 10);
  m = find(&all, "/own");
  assert_int_equal(m->processes, 1);
  assert_int_equal(m->permissions,
                   MAPPING_READ | MAPPING_EXECUTE | MAPPING_SHARED);
  assert_int_equal(find(&all, "[anon]")->processes, 1);
  assert_null(mapping_table_rest(&all));
  mapping_table_done(&all);
}

TEST(the_rest_of_a_process_is_in_the_rest_of_all) {
  struct mapping_table all = {0}, many = {0};
  struct rollup sum, total;

  feed_names(&many, MAPPING_NAMES_MAX + 5, 10);
  assert_int_equal(finish(&many, &sum), 0);
  assert_int_equal(mapping_table_add(&all, &many), 0);
  mapping_table_done(&many);
  assert_int_equal(mapping_table_rest(&all)->vmas, 5);
  /* Now it is full, and what another maps has no place. */
  add(&all, TEXT(MAPPING("/new", 8)));
  assert_int_equal(mapping_table_rest(&all)->vmas, 6);
  assert_int_equal(kb(mapping_table_rest(&all), ROLLUP_PSS), 5 * 4 + 8);
  total = total_of(&all);
  assert_int_equal(total.bytes[ROLLUP_PSS], sum.bytes[ROLLUP_PSS] + 8 * KIB);
  mapping_table_done(&all);
}

TEST(the_largest_come_first_and_the_others_are_the_rest) {
  static const char *const order[] = {"/c", "/z", "/a", "/b", "/d"};
  static const char text[] = MAPPING("/b", 4) MAPPING("/d", 1) MAPPING("/c", 8)
      MAPPING("/a", 4) "1000-4000 rw-p 00000000 00:00 0 /z\n" FIELDS(4);

  for (size_t max = 0; max <= 6; max++) {
    size_t n, expected = max < 5 ? max : 5;
    struct mapping_table t = {0};
    const struct mapping *m;
    struct rollup sum, total;

    feed_whole(&t, TEXT(text));
    assert_int_equal(finish(&t, &sum), 0);
    mapping_table_rank(&t, max, &m, &n);
    assert_int_equal(n, expected);
    for (size_t i = 0; i < n; i++)
      assert_true(has_name(&m[i], order[i]));
    assert_int_equal(mapping_table_rest(&t) == NULL, max >= 5);
    if (max < 5)
      assert_int_equal(mapping_table_rest(&t)->vmas, 5 - max);
    total = total_of(&t);
    assert_memory_equal(&total, &sum, sizeof(sum));
    mapping_table_done(&t);
  }
}

/* One sorts behind its own beginning, and bytes are not signed. */
TABLE_TEST(equal_mappings_are_ordered_by_their_bytes) {
  static const char *const order[] = {"/a", "/a\x01", "/aZ", "/a\xff", "/b"};
  const struct mapping *m;
  size_t n;

  feed_whole(t, TEXT(MAPPING("/a\xff", 4) MAPPING("/b", 4) MAPPING("/aZ", 4)
                         MAPPING("/a\x01", 4) MAPPING("/a", 4)));
  mapping_table_rank(t, 9, &m, &n);
  assert_int_equal(n, 5);
  for (size_t i = 0; i < n; i++)
    assert_true(has_name(&m[i], order[i]));
}

/* --- of a maps -------------------------------------------------------------*/

static const char maps[] =
    "55d0c8f7d000-55d0c8f96000 rw-p 00000000 00:00 0                  [heap]\n"
    "7f0000000000-7f0000100000 r-xp 00000000 08:01 7                  /lib/x\n"
    "7f0000100000-7f0000101000 rw-p 00100000 08:01 7                  /lib/x\n"
    "7f0000200000-7f0000201000 rw-s 00000000 00:00 0 \n";

static void feed_maps(struct mapping_table *t) {
  feed(t, TEXT(maps), 60);
  assert_int_equal(mapping_table_finish_maps(t), 0);
}

TABLE_TEST(a_maps_has_all_but_the_amounts) {
  const struct mapping *m;

  feed_maps(t);
  assert_int_equal(t->n, 4);
  m = find(t, "/lib/x");
  assert_int_equal(m->vmas, 2);
  assert_int_equal(m->processes, 1);
  assert_int_equal(m->size, 0x101000);
  assert_int_equal(m->permissions, RPW | MAPPING_EXECUTE);
  assert_int_equal(m->sum.known, 0);
  assert_int_equal(find(t, "[heap]")->size, 0x19000);
  assert_int_equal(find(t, "[anon]")->permissions,
                   MAPPING_READ | MAPPING_WRITE | MAPPING_SHARED);
  assert_null(mapping_table_rest(t));
}

TEST(malformed_maps_is_refused) {
  static const char *const texts[] = {MAPPING("/a", 4), "x\n",
                                      ("Size: 4 kB\n"
                                       "Rss: 4 kB\n")};

  for (size_t i = 0; i < 3; i++) {
    struct mapping_table t = {0};

    feed_whole(&t, texts[i], strlen(texts[i]));
    assert_int_equal(mapping_table_finish_maps(&t), -EBADMSG);
    mapping_table_done(&t);
  }
}

/* In whichever order they come, and in the rest as well. */
TEST(a_sum_with_a_maps_in_it_is_not_known) {
  for (int turn = 0; turn < 3; turn++) {
    struct mapping_table all = {0}, one = {0};
    const struct mapping *m;
    size_t n;

    feed_maps(&one);
    for (int i = 0; i < 3; i++)
      if (i == turn)
        assert_int_equal(mapping_table_add(&all, &one), 0);
      else
        add(&all, TEXT(MAPPING("/lib/x", 8) MAPPING("/own", 2)));
    mapping_table_done(&one);
    m = find(&all, "/lib/x");
    assert_int_equal(m->processes, 3);
    assert_int_equal(m->size, 0x101000 + 2 * 0x1000);
    assert_int_equal(m->sum.known, 0);
    assert_int_equal(kb(m, ROLLUP_PSS), 0);
    assert_int_equal(kb(find(&all, "/own"), ROLLUP_PSS), 4);
    /* Size decides without Pss. */
    mapping_table_rank(&all, 2, &m, &n);
    assert_int_equal(n, 2);
    assert_true(has_name(&m[0], "/lib/x"));
    assert_true(has_name(&m[1], "[heap]"));
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
    *heap = (struct mapping){.name = heap->name,
                             .name_len = heap->name_len,
                             .vmas = 1,
                             .processes = 1,
                             .sum = {.known = 1U << ROLLUP_RSS},
                             .is_sampled = true,
                             .pages_sampled = 5,
                             .pss_error = 7};
    heap->sum.bytes[ROLLUP_RSS] = 4 * KIB;
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

TEST(an_empty_table_has_no_mapping_and_no_rest) {
  struct mapping_table t = {0}, other = {0};
  const struct mapping *m;
  size_t n;

  assert_int_equal(mapping_table_add(&t, &other), 0);
  fixture_taint(&m, sizeof(m));
  fixture_taint(&n, sizeof(n));
  mapping_table_rank(&t, 5, &m, &n);
  assert_int_equal(n, 0);
  assert_null(m);
  assert_null(mapping_table_rest(&t));
  mapping_table_done(&t);
  mapping_table_done(&t);
}

/* --- without memory --------------------------------------------------------*/

TEST(without_memory_feeding_says_so) {
  bool has_run_out = true;

  for (size_t n = 0; has_run_out; n++) {
    struct mapping_table t = {0};
    struct rollup sum;
    char text[400];
    int r;

    /* feed() takes memory too. */
    scarce_after(n);
    for (size_t i = 0; i < 200; i++)
      mapping_table_feed(
          &t, text,
          (size_t)snprintf(text, sizeof(text), MAPPING("/%zu", 4), i));
    has_run_out = scarce_end();
    r = finish(&t, &sum);
    assert_int_equal(r, has_run_out ? -ENOMEM : 0);
    mapping_table_done(&t);
    assert_true(n > 5 || has_run_out);
  }
}

TEST(without_memory_adding_says_so) {
  struct mapping_table one = {0};
  bool has_run_out = true;

  feed_names(&one, MAPPING_NAMES_MAX + 1, 10);
  for (size_t n = 0; has_run_out; n++) {
    struct mapping_table all = {0};
    int r;

    scarce_after(n);
    r = mapping_table_add(&all, &one);
    has_run_out = scarce_end();
    assert_int_equal(r, has_run_out ? -ENOMEM : 0);
    /* It is not whole, and stays so. */
    assert_int_equal(mapping_table_add(&all, &one), r);
    mapping_table_done(&all);
    assert_true(n > 5 || has_run_out);
  }
  mapping_table_done(&one);
}
