#include "test.h"

#include "extract.h"
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

static char included[256];

static int note_include(void *context, const char *pattern,
                        const char *filter) {
  int *r = context;
  size_t len = strlen(included);

  snprintf(included + len, sizeof(included) - len, "%s|%s;", pattern,
           filter ? filter : "-");
  return *r;
}

static char *extract(const char *text, size_t len, enum extract_what what,
                     int *r) {
  char *copy = fixture_copy(text, len), *ret;
  size_t size;
  FILE *out = open_memstream(&ret, &size);

  assert_non_null(out);
  included[0] = '\0';
  *r = extract_text((struct span){copy, len}, what, out, note_include, r);
  fclose(out);
  free(copy);
  return ret;
}

static const struct {
  const char *name;
  const char *text;
  size_t len;
  const char *blocks;
} cases[] = {
    {"nothing", TEXT(""), ""},
    {"no block", TEXT("LoadPlugin smaps\n"), ""},
    {"a block",
     TEXT("A 1\n<Plugin smaps>\n  Other \"x\" # why\n</Plugin>\nB 2\n"),
     "<Plugin smaps>\n  Other \"x\" # why\n</Plugin>\n"},
    {"quoted, in other case", TEXT("<pLUGIN \"SMAPS\">\nA 1\n</pLUGIN>\n"),
     "<pLUGIN \"SMAPS\">\nA 1\n</pLUGIN>\n"},
    {"with blanks", TEXT("\t< Plugin\tsmaps >\r\nA 1\r\n\t</ Plugin>\r\n"),
     "\t< Plugin\tsmaps >\r\nA 1\r\n\t</ Plugin>\r\n"},
    {"escaped quotes", TEXT("<Plugin \"sm\\aps\">\nA 1\n</Plugin>\n"),
     "<Plugin \"sm\\aps\">\nA 1\n</Plugin>\n"},
    {"other plugins",
     TEXT("<Plugin csv>\n<Plugin smaps>\nA 1\n</Plugin>\n"
          "</Plugin>\n<Plugin smapsx>\nB\n</Plugin>\n"
          "<Plugin>\n</Plugin>\n"),
     ""},
    {"two blocks",
     TEXT("<Plugin smaps>\nA 1\n</Plugin>\n<Plugin smaps>\nB 2\n"
          "</Plugin>"),
     "<Plugin smaps>\nA 1\n</Plugin>\n<Plugin smaps>\nB 2\n</Plugin>\n"},
    {"commented out", TEXT("#<Plugin smaps>\n# A 1\n#</Plugin>\n"), ""},
    {"groups",
     TEXT("<Plugin smaps>\n<Group \"g\">\nComm \"</Plugin>\"\n"
          "</Group>\nOther \"o\"\n</Plugin>\nC 3\n"),
     "<Plugin smaps>\n<Group \"g\">\nComm \"</Plugin>\"\n</Group>\nOther "
     "\"o\"\n"
     "</Plugin>\n"},
    {"options of files go",
     TEXT("<Plugin smaps>\nStateFile \"/x\"\n stateinterval 5\nA 1\n"
          "<Capture>\nDirectory \"/d\"\n<X>\n</X>\n</Capture>\nB 2\n"
          "<Group \"StateFile\">\nComm \"x\"\n</Group>\n</Plugin>\n"),
     "<Plugin smaps>\nA 1\nB 2\n<Group \"StateFile\">\nComm \"x\"\n</Group>\n"
     "</Plugin>\n"},
    {"those in a group are the plugin's to refuse",
     TEXT("<Plugin smaps>\n<Group \"g\">\nStateFile \"x\"\n<Capture>\n"
          "</Capture>\n</Group>\n</Plugin>\n"),
     "<Plugin smaps>\n<Group \"g\">\nStateFile \"x\"\n<Capture>\n</Capture>\n"
     "</Group>\n</Plugin>\n"},
    {"a string over two lines",
     TEXT("<Plugin smaps>\nStateFile \"/a\n<Group>\n\"\nComm \"a\\\"\n"
          "StateFile\"\n</Plugin>\n"),
     "<Plugin smaps>\nComm \"a\\\"\nStateFile\"\n</Plugin>\n"},
    {"a line that goes on",
     TEXT("<Plugin smaps>\nStateFile \\\n \"x\"\nA \\\n 1\n"
          "</Plugin>\n"),
     "<Plugin smaps>\nA \\\n 1\n</Plugin>\n"},
    {"a quotation mark in a comment",
     TEXT(
         "# it's \"so\n<Plugin smaps>\nA 1 # \"\nStateFile \"x\"\n</Plugin>\n"),
     "<Plugin smaps>\nA 1 # \"\n</Plugin>\n"},
    {"left open", TEXT("<Plugin smaps>\nA 1"), "<Plugin smaps>\nA 1\n"},
    {"ends in a string", TEXT("<Plugin smaps>\nA \"x"),
     "<Plugin smaps>\nA \"x\n"},
    {"ends in a backslash", TEXT("<Plugin smaps>\nA \"\\"),
     "<Plugin smaps>\nA \"\\\n"},
    {"closes what is not open",
     TEXT("</Plugin>\n<Plugin smaps>\nA 1\n"
          "</Plugin>\n"),
     "<Plugin smaps>\nA 1\n</Plugin>\n"},
};

TEST(only_our_blocks_are_taken) {
  for (size_t i = 0; i < LENGTH(cases); i++) {
    int r = 0;
    char *blocks = extract(cases[i].text, cases[i].len, EXTRACT_BLOCKS, &r);

    if (r != 0 || strcmp(blocks, cases[i].blocks) != 0)
      fail_msg("%s: \"%s\"", cases[i].name, blocks);
    free(blocks);
  }
}

TEST(a_text_may_end_anywhere) {
  for (size_t i = 0; i < LENGTH(cases); i++)
    for (size_t len = 0; len < cases[i].len; len++) {
      int r = 0;

      free(extract(cases[i].text, len, EXTRACT_BLOCKS, &r));
      assert_int_equal(r, 0);
    }
}

TEST(global_options_are_extracted) {
  int r = 0;
  char *globals = extract(
      TEXT("Hostname \"h\"\nInterval 5\nPluginDir \"/p\"\nTypesDB \"/t\" "
           "\"/u\"\n"
           "BaseDir \"/b\"\n<Plugin smaps>\nPluginDir \"/no\"\n</Plugin>\n"),
      EXTRACT_GLOBALS, &r);

  assert_string_equal(globals, "Hostname \"h\"\nPluginDir \"/p\"\n"
                               "TypesDB \"/t\" \"/u\"\n");
  free(globals);
}

TEST(includes_are_followed_at_the_top) {
  static const char text[] =
      "Include \"/etc/c.d/*.conf\"\n# Include \"/no\"\n"
      "<Include \"/etc/d\">\n  Filter \"*.c\\\"f\"\n</Include>\n"
      "<Include \"/etc/e\">\n</Include>\n"
      "<Plugin csv>\nInclude \"/no\"\n</Plugin>\n";
  int r = 0;

  free(extract(text, sizeof(text) - 1, EXTRACT_BLOCKS, &r));
  assert_string_equal(included, "/etc/c.d/*.conf|-;/etc/d|*.c\"f;/etc/e|-;");
  r = -EACCES;
  free(extract(text, sizeof(text) - 1, EXTRACT_BLOCKS, &r));
  assert_int_equal(r, -EACCES);
  assert_string_equal(included, "/etc/c.d/*.conf|-;");
}

TEST(a_file_that_is_not_there_is_named) {
  struct config_error reason = {""};

  assert_int_equal(
      extract_file("/nowhere/at/all", EXTRACT_BLOCKS, stdout, &reason),
      -ENOENT);
  assert_non_null(strstr(reason.text, "/nowhere/at/all: No such file"));
}
