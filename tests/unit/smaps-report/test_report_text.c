/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "document.h"
#include "fixture.h"
#include "json_lines.h"
#include "options.h"
#include "text.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Output must not depend on the characters that wcwidth() lets pass. */
static int set_locale(void **state) {
  (void)state;
  setlocale(LC_CTYPE, "C.UTF-8");
  return 0;
}

TEST_GROUP(set_locale, NULL)

/* ---- characters ---- */

static const struct {
  const char *name;
  const char *text;
  size_t len;
  size_t taken;
  uint32_t c;
} sequences[] = {
    {"ASCII", TEXT("a\x80"), 1, 'a'},
    {"two bytes", TEXT("\xc2\x80"), 2, 0x80},
    {"three bytes", TEXT("\xe0\xa0\x80"), 3, 0x800},
    {"four bytes", TEXT("\xf4\x8f\xbf\xbf"), 4, 0x10ffff},
    {"overlong NUL", TEXT("\xc0\x80"), 0, 0},
    {"overlong slash in three", TEXT("\xe0\x80\xaf"), 0, 0},
    {"overlong in four", TEXT("\xf0\x80\x80\xaf"), 0, 0},
    {"a surrogate", TEXT("\xed\xa0\x80"), 0, 0},
    {"beyond the last", TEXT("\xf4\x90\x80\x80"), 0, 0},
    {"five bytes", TEXT("\xf8\x88\x80\x80\x80"), 0, 0},
    {"a stray continuation", TEXT("\x80"), 0, 0},
    {"0xff", TEXT("\xff"), 0, 0},
    {"cut", TEXT("\xe2\x82"), 0, 0},
    {"no continuation", TEXT("\xe2\x28\xa1"), 0, 0},
};

TEST(only_utf8_is_taken) {
  for (size_t i = 0; i < LENGTH(sequences); i++) {
    char *text = fixture_copy(sequences[i].text, sequences[i].len);
    uint32_t c = 0;

    if (utf8_decode(text, sequences[i].len, &c) != sequences[i].taken ||
        c != sequences[i].c)
      fail_msg("%s: U+%04x", sequences[i].name, c);
    free(text);
  }
}

TEST(control_and_format_characters_are_not_plain) {
  static const uint32_t hidden[] = {
      0x00,   0x07,   0x1b,   0x1f,   0x7f,   0x80,    0x9b,    0x9f,
      0xad,   0x61c,  0x200b, 0x200e, 0x200f, 0x2028,  0x202a,  0x202e,
      0x2066, 0x2069, 0xfeff, 0xfe0f, 0xfff9, 0xe0001, 0xe0041, 0xe01ef};
  static const uint32_t plain[] = {' ',   '~',    0xa0,   0xe9,
                                   0x301, 0x20ac, 0x4e2d, 0x1f600};

  for (size_t i = 0; i < LENGTH(hidden); i++)
    if (text_is_plain(hidden[i]))
      fail_msg("U+%04x", hidden[i]);
  for (size_t i = 0; i < LENGTH(plain); i++)
    if (!text_is_plain(plain[i]))
      fail_msg("U+%04x", plain[i]);
}

/* ---- text ---- */

static void check_text(struct text *t, const char *expected, size_t width) {
  if (strcmp(t->bytes ? t->bytes : "", expected) != 0 || t->width != width)
    fail_msg("\"%s\", %zu columns, not \"%s\"", t->bytes, t->width, expected);
  text_done(t);
}

TEST(width_is_in_columns_of_the_screen) {
  struct style utf8 = {.is_utf8 = true, .mem_total = MISSING};
  struct text t = {0};

  text_add_name(&t, "na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87 e\xcc\x81", &utf8);
  check_text(&t, "na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87 e\xcc\x81", 12);
  text_add_name(&t, "\xc2\x9b\xe2\x80\xae\xf3\xa0\x80\x81", &utf8);
  check_text(&t, "\\xc2\\x9b\\xe2\\x80\\xae\\xf3\\xa0\\x80\\x81", 36);
}

TEST(text_is_cut_between_characters) {
#define WIDE "\xe4\xb8\xad"
#define ACCENT "e\xcc\x81"
  static const char *const cut[] = {
      "", "a", "a", "a" WIDE, "a" WIDE ACCENT, "a" WIDE ACCENT "z"};
  struct style utf8 = {.is_utf8 = true, .mem_total = MISSING};

  for (size_t width = 0; width < LENGTH(cut); width++) {
    struct text t = {0};

    text_add_name(&t, "a" WIDE ACCENT "z", &utf8);
    text_cut(&t, width);
    assert_string_equal(t.bytes, cut[width]);
    text_done(&t);
  }
}

TEST(amounts_have_the_unit_asked_for) {
  static const struct {
    uint64_t bytes;
    const char *shown[3]; /* in KiB, for people, in percent of 1000 KiB */
  } cases[] = {
      {0, {"0", "0", "0.00%"}},
      {511, {"0", "511", "0.05%"}},
      {512, {"1", "512", "0.05%"}},
      {1024, {"1", "1.00K", "0.10%"}},
      {1048524, {"1024", "1.00M", "102.39%"}},
      {1048575, {"1024", "1.00M", "102.40%"}},
      {UINT64_C(3) << 29, {"1572864", "1.50G", "157286.40%"}},
      {MISSING - 1, {"18014398509481984", "16.0E", NULL}},
      {MISSING, {"-", "-", "-"}},
  };

  for (size_t i = 0; i < LENGTH(cases); i++)
    for (int unit = UNIT_KIB; unit <= UNIT_PERCENT; unit++) {
      struct style s = {.unit = (enum unit)unit, .mem_total = 1024000};
      const char *want = cases[i].shown[unit == UNIT_KIB     ? 0
                                        : unit == UNIT_HUMAN ? 1
                                                             : 2];
      struct text t = {0};

      text_add_bytes(&t, cases[i].bytes, &s);
      if (want && strcmp(t.bytes, want) != 0)
        fail_msg("%ju: \"%s\"", (uintmax_t)cases[i].bytes, t.bytes);
      text_done(&t);
    }
}

TEST(times_have_a_unit) {
  static const struct {
    double seconds;
    const char *shown;
  } cases[] = {{0, "0us"},       {0.000011, "11us"}, {0.0009996, "1.0ms"},
               {1301, "21m41s"}, {216000, "2d12h"},  {(double)NAN, "-"}};

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct text t = {0};

    text_add_seconds(&t, cases[i].seconds);
    check_text(&t, cases[i].shown, strlen(cases[i].shown));
  }
}

/* ---- JSON ---- */

TEST(json_is_valid_and_safe) {
  char *text;
  size_t size;
  struct json_lines j = {.out = open_memstream(&text, &size)};

  json_lines_begin(&j, NULL, '[');
  json_lines_begin(&j, NULL, '{');
  json_lines_text(&j, "a\"",
                  "\\\x1b\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\xc3\xa9");
  json_lines_text(&j, "b", "x\xff");
  json_lines_text(&j, "none", NULL);
  json_lines_whole(&j, "c", MISSING - 1);
  json_lines_whole(&j, "none", MISSING);
  json_lines_real(&j, "d", 0.1);
  json_lines_real(&j, "none", (double)NAN);
  json_lines_change(&j, "e", true, 5);
  json_lines_change(&j, "f", true, 0);
  json_lines_change(&j, "none", true, MISSING);
  json_lines_begin(&j, "g", '[');
  json_lines_end(&j, ']');
  json_lines_end(&j, '}');
  json_lines_begin(&j, NULL, '{');
  json_lines_end(&j, '}');
  json_lines_end(&j, ']');
  fclose(j.out);
  assert_string_equal(
      text, "[\n{\"a\\\"\":\"\\\\\\u001b\\u007f\\u009b\\u202e\\udb40\\udc41"
            "\xc3\xa9\",\"b\":\"x\\\\xff\",\"c\":18446744073709551614,"
            "\"d\":0.1,\"e\":-5,\"f\":0,\"g\":[]},\n{}\n]\n");
  free(text);
}

/* ---- the command line ---- */

#define ARGS_MAX 12

/* Words are separated by blanks; '_' is an empty word. */
static int parse(const char *line, struct options *ret,
                 struct config_error *reason) {
  static char words[256];
  char *argv[ARGS_MAX] = {(char[]){"smaps-report"}};
  int argc = 1;

  snprintf(words, sizeof(words), "%s", line);
  for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
    assert_true(argc < ARGS_MAX);
    argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
  }
  return options_parse(argc, argv, ret, reason);
}

static struct options parse_valid(const char *line) {
  struct config_error reason = {""};
  struct options o;

  if (parse(line, &o, &reason) < 0)
    fail_msg("%s: %s", line, reason.text);
  return o;
}

TEST(options_are_taken_in_every_form) {
  static const char *const lines[] = {
      "-k -r -s uss -g web f",   "-krs uss -gweb f",
      "-krsuss f -gweb",         "--human --reverse --sort uss --group=web f",
      "f --sort=uss -kr -g web", "-krsuss -gweb -- f",
      "live -krsuss -gweb -C f"};

  for (size_t i = 0; i < LENGTH(lines); i++) {
    struct options o = parse_valid(lines[i]);

    assert_int_equal(o.unit, UNIT_HUMAN);
    assert_true(o.is_reversed && o.has_header && !o.is_json);
    assert_int_equal(o.sort, AMOUNT_USS);
    assert_string_equal(o.group, "web");
    assert_string_equal(o.command == COMMAND_LIVE ? o.config : o.files[0], "f");
  }
  assert_string_equal(parse_valid("table").files[0], "table");
  assert_string_equal(column_name(parse_valid("diff -s epss a b").sort),
                      "epss");
}

TEST(limits_are_shares_or_amounts) {
  static const struct {
    const char *line;
    bool is_percent;
    double value;
  } cases[] = {
      {"diff --fail-over=2.5% a b", true, 2.5},
      {"diff --fail-over 0 a b", false, 0},
      {"diff --fail-over 1.5K a b", false, 1536},
      {"diff --fail-over 1T a b", false, 1099511627776.0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct limit limit = parse_valid(cases[i].line).limit;

    assert_true(limit.is_set && limit.is_percent == cases[i].is_percent);
    assert_true(fabs(limit.value - cases[i].value) < 1e-9);
  }
}

static const struct {
  const char *line;
  const char *reason;
} wrong[] = {
    {"", "expected FILE...; see --help"},
    {"diff a", "expected OLD NEW"},
    {"diff --since 1x", "--since \"1x\": expected an age such as 90m or 2h"},
    {"diff --since 2h a b", "--since: expected at most one file"},
    {"html --since 2h a b", "--since: expected at most one file"},
    {"html -C c a", "-C needs --since"},
    {"diff -C c a b", "-C needs --since"},
    {"--since 2h a", "--since: no such option;"},
    {"explain", "expected FILE [PID]"},
    {"folded a b", "\"b\": expected only FILE"},
    {"- a -", "\"-\": expected at most once"},
    {"check a", "\"a\": expected only options, such as -C FILE"},
    {"_", "expected the name of a file"},
    {"-x f", "-x: no such option; a subcommand has to be"},
    {"explain -k f", "-k: no such option of \"explain\""},
    {"-C x f", "-C: no such option;"},
    {"--colour f", "--colour: no such option;"},
    {"--human=yes f", "--human: takes no value"},
    {"f -s", "-s: expected COLUMN after it"},
    {"f --sort", "--sort: expected COLUMN after it"},
    {"-s _ f", "-s \"\": expected a column, which -c help lists"},
    {"-s pps f", "-s \"pps\": expected a column, which -c help lists"},
    {"-s ps\x1b f", "-s \"ps\\x1b\""},
    {"diff -s pid a b", "-s \"pid\": expected an amount, which -c help lists"},
    {"-u -s pid f", "-s \"pid\": expected a column of this table"},
    {"-c pid,,pss f", "-c \"\": expected names of columns"},
    {"-c pid, f", "-c \"\": expected names"},
    {"-m -c pss_anon f", "-c: expected columns of one table"},
    {"-u -m f", "-u, -m, -w, -G and --processes: expected at most one"},
    {"-M heap f", "-M needs -m"},
    {"-P [ f", "-P \"[\": expected a regular expression: "},
    {"-w -P x f", "-w cannot be combined with -g, -P or -U"},
    {"--width 10001 f", "--width \"10001\": expected a number of columns"},
    {"-w -G f", "expected at most one"},
    {"-w -g x f", "-w cannot be combined with -g, -P or -U"},
    {"diff -n -1 a b", "-n \"-1\": expected a number of rows"},
    {"diff --fail-over 10 a b", "--fail-over \"10\": expected 0, a percentage"},
    {"diff --fail-over 10x a b", "--fail-over \"10x\": expected 0"},
    {"diff --fail-over 10MB a b", "--fail-over \"10MB\": expected 0"},
    {"diff --fail-over -1 a b", "--fail-over \"-1\""},
    {"diff --fail-over % a b", "--fail-over \"%\""},
    {"diff --fail-over nan a b", "--fail-over \"nan\""},
    {"diff --fail-over 1e9 a b", "--fail-over \"1e9\""},
    {"diff --fail-over 0x10 a b", "--fail-over \"0x10\""},
    {"diff --fail-over 1.2.3 a b", "--fail-over \"1.2.3\""},
    {"explain f 1x", "PID \"1x\": expected the number of a process"},
    {"explain f 4294967296", "PID \"4294967296\""},
    {"explain -g web f 7", "-g cannot be combined with a PID"},
    {"explain -C x f", "-C and -S need the word live as FILE"},
    {"explain -S x f 7", "-C and -S need the word live as FILE"},
    {"explain -g", "-g: expected GROUP after it"},
    {"live --config= -k", "-C \"\": expected a path"},
    {"live -t --watch 1", "--watch cannot be combined with --total"},
    {"live -S x --watch 1", "--watch cannot be combined with --source"},
    {"live --watch=", "--watch \"\": expected a number of seconds from 0.5"},
    {"live --watch 0.4", "--watch \"0.4\": expected a number of seconds"},
    {"live --watch=-1", "--watch \"-1\": expected a number of seconds"},
    {"live --watch 1s", "--watch \"1s\": expected a number of seconds"},
    {"live --watch 3601", "from 0.5 to 3600"},
};

TEST(a_wrong_command_line_is_explained) {
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    struct config_error reason = {""};
    struct options o = {.command = COMMANDS};

    if (parse(wrong[i].line, &o, &reason) != -EINVAL)
      fail_msg("%s: taken", wrong[i].line);
    if (!strstr(reason.text, wrong[i].reason))
      fail_msg("%s: \"%s\"", wrong[i].line, reason.text);
    assert_int_equal(o.command, COMMANDS);
  }
}
