#include "test.h"

#include <smaps/config_error.h>

#include <errno.h>
#include <string.h>

/* 32 letters, which is the longest word that is compared. */
#define LONG_WORD "abcdefghijklmnopqrstuvwxyzabcdef"

static const char *const known[] = {
    "Comm",  "CommMatch", "CommandLine", "Executable", "User",    "Unit",
    "Slice", "Cgroup",    "Container",   "PidFile",    LONG_WORD, LONG_WORD "g",
};
#define KNOWN LENGTH(known)

TEST(a_reason_is_formatted_and_invalid) {
  struct config_error r;

  assert_int_equal(config_error_set(&r, "expected %d to %s", 1, "9"), -EINVAL);
  assert_string_equal(r.text, "expected 1 to 9");
  assert_int_equal(config_error_set(&r, "%s", ""), -EINVAL);
  assert_string_equal(r.text, "");
}

TEST(a_long_reason_is_cut_at_its_size) {
  char text[2 * sizeof(struct config_error)];
  struct {
    struct config_error reason;
    char canary[16];
  } r;

  memset(text, 'x', sizeof(text));
  for (size_t len = sizeof(r.reason) - 2; len < sizeof(text); len++) {
    size_t most = sizeof(r.reason.text) - 1;

    memset(&r, 'Z', sizeof(r));
    assert_int_equal(config_error_set(&r.reason, "%.*s", (int)len, text),
                     -EINVAL);
    assert_int_equal(strlen(r.reason.text), len < most ? len : most);
    assert_int_equal(r.canary[0], 'Z');
  }
}

TEST(the_nearest_word_is_suggested) {
  static const struct {
    const char *name, *word, *nearest;
  } cases[] = {
      {"the very word", "Unit", "Unit"},
      {"case apart", "pIDfILE", "PidFile"},
      {"a letter is missing", "Executble", "Executable"},
      {"a letter too many", "Exxecutable", "Executable"},
      {"another letter", "Slise", "Slice"},
      {"two letters swapped", "Cgruop", "Cgroup"},
      {"a letter missing and another wrong", "Slcd", "Slice"},
      {"two edits in a short word", "Uinx", NULL},
      {"the nearer of two", "ComMatch", "CommMatch"},
      {"the nearer comes first", "Com", "Comm"},
      {"five edits in a word of nine", "Kondajmrr", NULL},
      {"empty", "", NULL},
      {"one letter", "U", NULL},
      {"the longest that is compared", LONG_WORD, LONG_WORD},
      {"longer than that", LONG_WORD "h", NULL},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    const char *nearest = config_error_nearest(cases[i].word, known, KNOWN);
    const char *want = cases[i].nearest;

    if (want ? !nearest || strcmp(nearest, want) != 0 : nearest != NULL)
      fail_msg("%s: %s", cases[i].name, nearest ? nearest : "nothing");
  }
}

TEST(among_equals_the_first_is_taken) {
  static const char *const words[] = {"cat", "hat", "bat"};

  assert_ptr_equal(config_error_nearest("rat", words, 3), words[0]);
  assert_ptr_equal(config_error_nearest("hat", words, 3), words[1]);
}
