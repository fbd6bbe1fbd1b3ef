/* Mistakes of a configuration, from collectd's log. */
#include "test.h"

#include "mistake.h"

#include <stdlib.h>
#include <string.h>

/* Lines 1 to 3 and from 10 on are not of the user. */
static const char config[] = "Hostname \"x\"\n"
                             "LoadPlugin smaps\n"
                             "#smaps-report: 7 /etc/a b.conf\n"
                             "<Plugin smaps \"/etc/a b.conf\">\n"
                             "  Other \"x\"\n"
                             "</Plugin>\n"
                             "#smaps-report: 20 /etc/c.conf\n"
                             "<Plugin smaps \"/etc/c.conf\">\n"
                             "</Plugin>\n"
                             "<Plugin smaps>\n"
                             "</Plugin>\n";

static FILE *open_text(const char *text) {
  FILE *file = tmpfile();

  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  rewind(file);
  return file;
}

/* What is printed of a log, and the number of mistakes. */
static char *print(const char *log_text, size_t *ret_n) {
  FILE *log = open_text(log_text), *read_config = open_text(config);
  char *printed;
  size_t size;
  FILE *out = open_memstream(&printed, &size);

  assert_non_null(out);
  *ret_n = mistake_print(log, read_config, out);
  fclose(out);
  fclose(log);
  fclose(read_config);
  return printed;
}

TEST(each_mistake_is_a_line) {
  static const struct {
    const char *name, *log, *printed;
    size_t n;
  } cases[] = {
      {"nothing", "", "", 0},
      {"no mistake",
       "plugin_load: plugin \"smaps\" successfully loaded.\n"
       "smaps plugin: version 0.1.0\n"
       "smaps plugin: ReadBudget 50 allows readings 50 % of a CPU\n"
       "Error: Parsing the config file failed!\n",
       "", 0},
      {"options",
       "smaps plugin: /a.conf: MaxAge 0: expected a number\n"
       "[2026-11-22] [error] smaps plugin: /b.conf: <Group \"g\">: Com \"x\": "
       "expected a selector\n",
       "/a.conf: MaxAge 0: expected a number\n"
       "/b.conf: <Group \"g\">: Com \"x\": expected a selector\n",
       2},
      {"another plugin's", "csv plugin: Foo 1: expected more\n", "", 0},
      {"hostile", "smaps plugin: a\x1b[1m: expected b\n",
       "a\\x1b[1m: expected b\n", 1},
      {"no newline at the end", "smaps plugin: a: expected b",
       "a: expected b\n", 1},
      {"a line that cannot be parsed",
       "Parse error in file `/tmp/x', line 5 near `x': syntax error\n"
       "yyparse returned error #1\n",
       "/etc/a b.conf:8: near `x': syntax error\n", 1},
      {"the first line of a block",
       "Parse error in file `/tmp/x', line 8 near `x': syntax error\n",
       "/etc/c.conf:20: near `x': syntax error\n", 1},
      {"the end of a line",
       "Parse error in file `/tmp/x', line 6 near `<newline>': no block\n",
       "/etc/a b.conf:8: near `<newline>': no block\n", 1},
      {"none of the user's",
       "Parse error in file `/tmp/x', line 1 near `x': syntax error\n",
       "?:0: near `x': syntax error\n", 1},
      {"no number", "Parse error in file `/tmp/x', line x near `x': y\n", "",
       0},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    size_t n;
    char *printed = print(cases[i].log, &n);

    if (n != cases[i].n || strcmp(printed, cases[i].printed) != 0)
      fail_msg("%s: %zu: \"%s\"", cases[i].name, n, printed);
    free(printed);
  }
}
