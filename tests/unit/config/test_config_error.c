#include "test.h"

#include <smaps/config_error.h>

#include <string.h>

/* 32 letters, which is the longest word that is compared. */
#define LONG_WORD "abcdefghijklmnopqrstuvwxyzabcdef"

static const char *const known[] = {
    "Comm",  "CommMatch", "CommandLine", "Executable", "User",    "Unit",
    "Slice", "Cgroup",    "Container",   "PidFile",    LONG_WORD, LONG_WORD "g",
};
#define KNOWN LENGTH(known)

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
