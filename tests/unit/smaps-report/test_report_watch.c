/* SPDX-License-Identifier: MIT */
/* What the screen of --watch shows, apart from the terminal. */
#include "test.h"

#include "load.h"
#include "watch_model.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static struct watch w;

static int make(void **state) {
  (void)state;
  watch_init(&w);
  return 0;
}

static int unmake(void **state) {
  (void)state;
  watch_done(&w);
  return 0;
}

#define WATCH_TEST(name) TEST_WITH(name, make, unmake, void *unused)

/* The keys are in ' instead of "; an amount of null is left out. */
static struct document load(const char *inner) {
  struct config_error reason = {""};
  struct document d = {.host = NULL};
  char text[4096];
  int n = snprintf(text, sizeof(text),
                   "{'format':'smaps-snapshot','version':2,%s}", inner);
  char *unknown;

  while ((unknown = strstr(text, "'pss':null")))
    memcpy(unknown, "'x':  null", strlen("'x':  null"));
  for (int i = 0; i < n; i++)
    if (text[i] == '\'')
      text[i] = '"';
  if (load_document_text(text, (size_t)n, NULL, &d, &reason) < 0)
    fail_msg("%s", reason.text);
  return d;
}

static void take(const char *inner) {
  struct document d = load(inner);

  watch_take(&w, &d);
}

#define GROUP(name, pss, n)                                                    \
  "{'name':'" name "','processes':" n ",'usage':{'pss':" pss "}}"

static void take_groups(const char *pss_a, const char *pss_b) {
  char inner[256];

  snprintf(inner, sizeof(inner),
           "'groups':[{'name':'a','processes':1,'usage':{'pss':%s}},"
           "{'name':'b','processes':2,'usage':{'pss':%s}}]",
           pss_a, pss_b);
  take(inner);
}

/* The names of the rows, in their order; the selected one in capitals. */
static const char *shown(void) {
  static char ret[256];
  size_t len = 0;

  ret[0] = '\0';
  for (size_t i = 0; i < w.n; i++) {
    size_t begin = len;

    len += (size_t)snprintf(ret + len, sizeof(ret) - len, "%s%s", i ? " " : "",
                            w.rows[i].name ? w.rows[i].name : "rest");
    for (size_t j = begin; i == w.views[w.level].at && j < len; j++)
      ret[j] = (char)toupper(ret[j]);
  }
  return ret;
}

#define assert_shown(expected) assert_string_equal(shown(), expected)

/* --- rows ----------------------------------------------------------------- */

WATCH_TEST(there_is_nothing_before_the_first_refresh) {
  assert_shown("");
  watch_move(&w, 1);
  watch_move(&w, -1);
  watch_scroll(&w, 20);
  assert_false(watch_enter(&w));
  assert_false(watch_leave(&w));
}

static const char four[] = "'groups':[" GROUP("d", "4", "9") "," GROUP(
    "c", "null", "2") "," GROUP("b", "7", "1") "," GROUP("a", "4", "3") "]";

/* Unknown values are last in both directions, and equal ones are sorted by
 * name. */
WATCH_TEST(rows_can_be_sorted_by_each_column) {
  static const struct {
    enum watch_sort sort;
    bool is_reversed;
    const char *expected;
  } cases[] = {
      {SORT_PSS, false, "B a d c"},   {SORT_PSS, true, "A d b c"},
      {SORT_COUNT, false, "D a c b"}, {SORT_COUNT, true, "B c a d"},
      {SORT_NAME, false, "A b c d"},  {SORT_NAME, true, "D c b a"},
      {SORT_USS, false, "A b c d"},   {SORT_LAST, false, "A b c d"},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    watch_done(&w);
    watch_init(&w);
    take(four);
    watch_sort_by(&w, cases[i].sort);
    if (cases[i].is_reversed)
      watch_reverse(&w);
    assert_shown(cases[i].expected);
  }
}

/* --- growth --------------------------------------------------------------- */

static void assert_change(double change, const char *expected) {
  char text[32] = "unknown";

  if (!isnan(change))
    snprintf(text, sizeof(text), "%+.0f", change);
  assert_string_equal(text, expected);
}

/* A start that was not known is the first that is. */
WATCH_TEST(growth_begins_with_the_first_pss_that_is_known) {
  take_groups("null", "1");
  assert_change(w.rows[1].start, "unknown");
  take_groups("7", "1");
  assert_change(w.rows[0].start, "+0");
  assert_change(w.rows[0].last, "unknown");
  take_groups("9", "1");
  assert_change(w.rows[0].start, "+2");
}

/* --- levels --------------------------------------------------------------- */

static const char members[] =
    "'groups':[{'name':'g','processes':3,'usage':{'pss':60}},"
    "{'name':'h','processes':1,'usage':{'pss':5}}],"
    "'processes':["
    "{'pid':10,'starttime':1,'groups':['g'],'comm':'small','user':'root',"
    "'usage':{'pss':10}},"
    "{'pid':11,'starttime':1,'groups':['g'],'comm':'java',"
    "'command_line':'java -jar x','usage':{'pss':50}},"
    "{'pid':12,'starttime':1,'groups':['h'],'comm':'other',"
    "'usage':{'pss':5}},"
    "{'pid':13,'starttime':1,'groups':['g'],'comm':'vfork',"
    "'source':'parent','usage':{'pss':50}}]";

/* Takes a close-up with the mappings of process `pid`. */
static void take_mappings_of(uint64_t pid, const char *pss_of_heap) {
  char inner[512];
  struct document d;

  snprintf(inner, sizeof(inner),
           "'groups':[],'processes':[{'pid':%d,'starttime':1,'groups':['g'],"
           "'comm':'java','mappings':["
           "{'name':'heap','permissions':'rw-p','vmas':1,'pss':%s,"
           "'private_clean':2,'private_dirty':3},"
           "{'name':'lib','permissions':'r-xp','vmas':2,'pss':20},"
           "{'vmas':7,'pss':1}]}]",
           (int)pid, pss_of_heap);
  d = load(inner);
  watch_take_close_up(&w, pid, &d, NULL);
}

static void take_mappings(const char *pss_of_heap) {
  take_mappings_of(11, pss_of_heap);
}

/* A process that shares its parent's memory is counted there. */
WATCH_TEST(keys_lead_into_a_group_and_a_process_and_back) {
  take(members);
  assert_shown("G h");
  assert_true(watch_enter(&w));
  assert_shown("JAVA -JAR X small");
  assert_int_equal(w.rows[0].count, 11);
  assert_int_equal(watch_pid(&w), MISSING);
  assert_true(watch_enter(&w));
  assert_int_equal(watch_pid(&w), 11);
  assert_shown("");
  take_mappings("30");
  assert_shown("HEAP lib rest");
  assert_int_equal(w.rows[0].amounts[SORT_USS], 5);
  assert_int_equal(w.rows[1].amounts[SORT_USS], MISSING);
  assert_int_equal(w.rows[1].count, 2);
  assert_false(watch_enter(&w));
  take_mappings("10");
  assert_shown("LIB heap rest");
  assert_change(w.rows[1].start, "-20");
  assert_true(watch_leave(&w));
  assert_shown("JAVA -JAR X small");
  assert_true(watch_leave(&w));
  assert_shown("G h");
}

WATCH_TEST(mappings_of_another_process_are_dropped) {
  struct document another;

  take(members);
  watch_enter(&w);
  take_mappings("30");
  assert_int_equal(w.level, LEVEL_PROCESSES);
  watch_enter(&w);
  assert_shown("");
  take_mappings_of(10, "30");
  assert_shown("");
  assert_null(w.trouble);
  /* The pid has come to another. */
  another = load("'groups':[],'processes':[{'pid':11,'starttime':9,"
                 "'mappings':[{'name':'a','pss':1}]}]");
  watch_take_close_up(&w, 11, &another, NULL);
  assert_shown("");
  assert_string_equal(w.trouble, "the process has ended");
  take_mappings("30");
  assert_null(w.trouble);
  assert_int_equal(w.n, 3);
}

WATCH_TEST(reason_for_missing_mappings_is_kept_until_they_come) {
  take(members);
  watch_enter(&w);
  watch_enter(&w);
  take_mappings("30");
  watch_take_close_up(&w, 11, NULL, "no");
  assert_string_equal(w.trouble, "no");
  assert_shown("");
  take_mappings("30");
  assert_null(w.trouble);
}

/* --- the selection -------------------------------------------------------- */

WATCH_TEST(the_first_row_is_selected_until_one_is_chosen) {
  take_groups("10", "20");
  assert_shown("B a");
  take_groups("30", "20");
  assert_shown("A b");
  watch_move(&w, 1);
  assert_shown("a B");
  take_groups("10", "20");
  assert_shown("B a");
}

WATCH_TEST(the_selection_stays_within_the_rows) {
  take(four);
  watch_move(&w, 99);
  assert_shown("b a d C");
  watch_move(&w, 1);
  assert_shown("b a d C");
  watch_move(&w, -2);
  assert_shown("b A d c");
  watch_move(&w, -99);
  assert_shown("B a d c");
  watch_move(&w, 3);
  take_groups("1", "2");
  assert_shown("b A");
}

WATCH_TEST(the_selected_row_is_scrolled_to) {
  static const struct {
    int move;
    size_t height, top;
  } steps[] = {{0, 2, 0}, {2, 2, 1}, {-1, 2, 1}, {-1, 2, 0},
               {1, 4, 0}, {9, 1, 3}, {0, 0, 3}};

  take(four);
  for (size_t i = 0; i < LENGTH(steps); i++) {
    if (steps[i].move)
      watch_move(&w, steps[i].move);
    watch_scroll(&w, steps[i].height);
    assert_int_equal(w.views[LEVEL_GROUPS].top, steps[i].top);
  }
}

/* --- the filter ----------------------------------------------------------- */

WATCH_TEST(a_filter_is_a_part_of_a_name_in_any_case) {
  static const struct {
    const char *filter, *expected;
  } cases[] = {{"JAR", "JAVA -JAR X"},

               {"ROO", "SMALL"},
               {"10", "SMALL"},
               {"1", ""},
               {"none", ""},
               {"", "JAVA -JAR X small"},
               {NULL, "JAVA -JAR X small"}};

  take(members);
  watch_enter(&w);
  for (size_t i = 0; i < LENGTH(cases); i++) {
    watch_filter(&w, cases[i].filter);
    assert_shown(cases[i].expected);
    assert_int_equal(w.n_all, 2);
  }
}

WATCH_TEST(each_level_has_its_own_filter) {
  take(members);
  watch_filter(&w, "g");
  assert_shown("G");
  watch_enter(&w);
  assert_string_equal(watch_filter_of(&w), "");
  watch_filter(&w, "small");
  take(members);
  assert_shown("SMALL");
  watch_leave(&w);
  assert_shown("G");
  watch_enter(&w);
  assert_string_equal(watch_filter_of(&w), "");
}

/* --- freezing ------------------------------------------------------------- */

/* They are read once, for the screen to go into. */
WATCH_TEST(mappings_come_while_frozen_and_then_stay) {
  take(members);
  w.is_frozen = true;
  watch_enter(&w);
  watch_enter(&w);
  take_mappings("30");
  assert_shown("HEAP lib rest");
  take_mappings("3");
  assert_shown("HEAP lib rest");
}
