/* Properties of a regular expression before it is compiled. */
#include "test.h"

#include "config/pattern.h"

#include <stdlib.h>
#include <string.h>

TEST(repetitions_that_add_little_are_taken) {
  static const char *const patterns[] = {"^[0-9a-f]{64}$",
                                         "a{1001}",
                                         "(a{100}){9}",
                                         "a++++++++",
                                         "(a*)*(b?)*",
                                         "[+{]{1,3}+",
                                         "a{,5}",
                                         "a\\{9999}",
                                         "((((a))))",
                                         "[[:alpha:]]{2}",
                                         "(ab|cd|ef)+x",
                                         "a{",
                                         "a|",
                                         "a)",
                                         "(a",
                                         "[",
                                         "\\"};

  for (size_t i = 0; i < LENGTH(patterns); i++)
    if (pattern_repeats_too_much(patterns[i]))
      fail_msg("%s", patterns[i]);
}

TEST(repetitions_that_add_much_are_not) {
  static const char *const patterns[] = {
      "((b|a{25,}){250,})c", "a{1010}",
      "a{0,1011}",           "a{1011,}",
      "(a{100}){11}",        "((a|b?){9}){30}",
      "a++++++++++++",       "(((a+)+b)+)+{99}",
      "(b(a{9}c){9}){11}",   "a{99999999999999999999}",
      "(a?)*{15}",           "(a|)*?{30}c",
      "a?*{,2}{99}c",        "[ab]{65535}x",
      "(a{2000}b){2",        "(a{1010}"};

  for (size_t i = 0; i < LENGTH(patterns); i++)
    if (!pattern_repeats_too_much(patterns[i]))
      fail_msg("%s", patterns[i]);
}

/* However long it is: what is written is counted once. */
TEST(names_may_be_as_many_as_there_are) {
  char *pattern = malloc(200001);

  for (size_t i = 0; i < 200000; i++)
    pattern[i] = i % 8 == 7 ? '|' : 'a';
  pattern[200000] = '\0';
  assert_false(pattern_repeats_too_much(pattern));
  free(pattern);
}

TEST(parentheses_may_not_be_nested_without_end) {
  char pattern[2 * PATTERN_DEPTH_MAX + 4] = "";

  memset(pattern, '(', PATTERN_DEPTH_MAX);
  assert_false(pattern_repeats_too_much(pattern));
  memset(pattern, '(', PATTERN_DEPTH_MAX + 1);
  assert_true(pattern_repeats_too_much(pattern));
}
