#include "test.h"

#include "extract.h"
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  *r = extract_text((struct span){copy, len}, "/etc/a \"b", what, out,
                    note_include, r);
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
     TEXT("<Plugin smaps>\nStateFile \"/x\"\n stateinterval 5\nStateAtStart "
          "true\nA 1\n"
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

/* The source is a hostile name. */
TEST(whole_blocks_are_named_after_their_file) {
  static const struct {
    const char *name, *text, *blocks;
  } whole[] = {
      {"nothing", "LoadPlugin smaps\n", ""},
      {"options of files stay",
       "# x\nLoadPlugin smaps\n<Plugin smaps>\nStateFile \"/x\"\n<Capture>\n"
       "Directory \"/d\"\n</Capture>\n</Plugin>\n",
       "#smaps-report: 3 /etc/a \\x22b\n<Plugin smaps \"/etc/a \\\\x22b\">\n"
       "StateFile \"/x\"\n<Capture>\nDirectory \"/d\"\n</Capture>\n"
       "</Plugin>\n"},
      {"lines in strings count",
       "Foo \"a\nb\" \\\n 7\n<Plugin smaps> # why\nA 1\n\n</Plugin>\n\n"
       "<Plugin \"SMAPS\">\n</Plugin>",
       "#smaps-report: 4 /etc/a \\x22b\n<Plugin smaps \"/etc/a \\\\x22b\">\n"
       "A 1\n\n</Plugin>\n"
       "#smaps-report: 9 /etc/a \\x22b\n<Plugin smaps \"/etc/a \\\\x22b\">\n"
       "</Plugin>\n"},
  };

  for (size_t i = 0; i < LENGTH(whole); i++) {
    int r = 0;
    char *blocks =
        extract(whole[i].text, strlen(whole[i].text), EXTRACT_NAMED, &r);

    if (r != 0 || strcmp(blocks, whole[i].blocks) != 0)
      fail_msg("%s: \"%s\"", whole[i].name, blocks);
    free(blocks);
  }
}

/* It would take the next file's blocks in. */
TEST(a_whole_block_has_an_end) {
  static const struct {
    const char *text;
    int r;
  } ends[] = {
      {"<Plugin smaps>\n<Group \"g\">\n</Group>\n</Plugin>", 0},
      {"<Plugin smaps>\n<Group \"g\">\n</Plugin>\n", -EBADMSG},
      {"<Plugin smaps>\nOther \"x\"\n", -EBADMSG},
      {"<Plugin smaps>\nOther \"x\n</Plugin>\n", -EBADMSG},
      {"<Plugin csv>\nOther \"x\"\n", 0},
  };

  for (size_t i = 0; i < LENGTH(ends); i++) {
    int r = 0;

    free(extract(ends[i].text, strlen(ends[i].text), EXTRACT_NAMED, &r));
    assert_int_equal(r, ends[i].r);
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

TEST(the_file_of_a_block_without_an_end_is_named) {
  struct config_error reason = {"old"};
  char path[] = "/tmp/smaps-extract-XXXXXX", *blocks;
  size_t size;
  FILE *out = open_memstream(&blocks, &size);
  int fd = mkstemp(path);

  assert_true(fd >= 0 && out);
  assert_int_equal(write(fd, "<Plugin smaps>\n", 15), 15);
  close(fd);
  assert_int_equal(extract_file(path, EXTRACT_NAMED, out, &reason), -EBADMSG);
  assert_memory_equal(reason.text, path, strlen(path));
  assert_non_null(strstr(reason.text, ": expected the end of a block"));
  assert_int_equal(extract_file(path, EXTRACT_BLOCKS, out, &reason), 0);
  fclose(out);
  free(blocks);
  unlink(path);
}

/* Its file is read more than once: the second time a pipe would be empty, and
 * whatever is wrong in it would be taken for right. */
TEST(pipe_is_refused) {
  struct config_error reason = {""};
  char path[32], *blocks;
  size_t size;
  FILE *out = open_memstream(&blocks, &size);
  int ends[2];

  assert_non_null(out);
  assert_int_equal(pipe(ends), 0);
  snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
  assert_int_equal(write(ends[1], "<Plugin smaps>\n", 15), 15);
  close(ends[1]);
  assert_int_equal(extract_file(path, EXTRACT_NAMED, out, &reason), -EINVAL);
  assert_non_null(strstr(reason.text, ": expected a file, and no pipe"));
  close(ends[0]);
  fclose(out);
  free(blocks);
}

/* The end of such a file is not cut off in silence. */
TEST(file_of_more_than_16_mib_is_refused) {
  struct config_error reason = {""};
  char path[] = "/tmp/smaps-extract-XXXXXX", *blocks;
  size_t size;
  FILE *out = open_memstream(&blocks, &size);
  int fd = mkstemp(path);

  assert_true(fd >= 0 && out);
  assert_int_equal(ftruncate(fd, 16 << 20), 0);
  assert_int_equal(extract_file(path, EXTRACT_NAMED, out, &reason), 0);
  assert_int_equal(ftruncate(fd, (16 << 20) + 1), 0);
  assert_int_equal(extract_file(path, EXTRACT_NAMED, out, &reason), -EFBIG);
  assert_memory_equal(reason.text, path, strlen(path));
  close(fd);
  fclose(out);
  free(blocks);
  unlink(path);
}

TEST(a_file_that_is_not_there_is_named) {
  struct config_error reason = {""};

  assert_int_equal(
      extract_file("/nowhere/at/all", EXTRACT_BLOCKS, stdout, &reason),
      -ENOENT);
  assert_non_null(strstr(reason.text, "/nowhere/at/all: No such file"));
}
