/* SPDX-License-Identifier: MIT */
#include "config/selector.h"

#include <errno.h>
#include <fnmatch.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COMM_MAX 15

/* Two for each attribute, in their order: a glob and a regular expression. */
#define OPTIONS(name, key, selector) #selector, #selector "Match",
const char *const selector_options[] = {
    ATTRIBUTE_TABLE(OPTIONS, OPTIONS) "PidFile", NULL};

int selector_find(const char *option) {
  for (int i = 0; selector_options[i]; i++)
    if (strcasecmp(option, selector_options[i]) == 0)
      return i;
  return -1;
}

/*
 * A back-reference takes glibc's regexec(3) exponential time: "(a*)\1b" takes
 * five seconds for a thousand letters a, and any user can put these into a
 * command line. Without one it is as a rule the square of the length at worst,
 * 50 to 200 ms for the 4 KiB that are matched. (POSIX has no back-references in
 * extended expressions.) In brackets "\1" is none, but can be written "1\".
 */
static bool has_back_reference(const char *p) {
  for (; (p = strchr(p, '\\')) && p[1]; p += 2)
    if (p[1] >= '1' && p[1] <= '9')
      return true;
  return false;
}

/* The kernel cuts comm to COMM_MAX bytes, so a longer name never matches. */
static int check_comm(const char *name, struct config_error *reason) {
  if (*name && strlen(name) <= COMM_MAX)
    return 0;
  return config_error_set(
      reason,
      "expected a name of 1 to %d bytes, because the kernel cuts longer names; "
      "select by CommandLineMatch or ProcessMatch instead",
      COMM_MAX);
}

/* Names are bytes. Another plugin may have set a locale for the daemon in which
 * not every byte is a character. */
static int compile_in_c_locale(regex_t *regex, const char *pattern, int flags) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  locale_t before;
  int rc;

  if (!c)
    return REG_ESPACE;
  before = uselocale(c);
  rc = regcomp(regex, pattern, flags);
  uselocale(before);
  freelocale(c);
  return rc;
}

/* fnmatch(3) takes a '[' without its ']' as a letter: that is a mistake here.
 * Sets are those of a basic regular expression, which may have other mistakes.
 * A backslash is a letter in a glob, as in the names of systemd: collectd has
 * removed one of two already. */
static int check_glob(const char *pattern, struct config_error *reason) {
  char *letters = strdup(pattern);
  regex_t regex;
  int rc;

  if (!letters)
    return -ENOMEM;
  for (char *p = letters; (p = strchr(p, '\\'));)
    *p = '_';
  rc = *pattern ? compile_in_c_locale(&regex, letters, 0) : REG_BADPAT;
  free(letters);
  if (rc == REG_BADPAT || rc == REG_EBRACK)
    return config_error_set(reason, "expected a shell glob that is not empty, "
                                    "with a ']' for each '['");
  if (rc == 0)
    regfree(&regex);
  return rc == REG_ESPACE ? -ENOMEM : 0;
}

static int compile_regex(regex_t *regex, const char *pattern,
                         struct config_error *reason) {
  char message[128];
  int rc;

  if (!*pattern)
    return config_error_set(
        reason, "expected a POSIX extended regular expression that is not "
                "empty");
  if (has_back_reference(pattern))
    return config_error_set(
        reason, "expected a POSIX extended regular expression without "
                "back-references such as \\1: a process could choose a "
                "name that takes hours to match");
  rc = compile_in_c_locale(regex, pattern, REG_EXTENDED);
  if (rc == 0)
    return 0;
  regerror(rc, regex, message, sizeof(message));
  return config_error_set(
      reason, "expected a POSIX extended regular expression: %s", message);
}

/* An empty glob matches what has no such attribute: no unit, no container. That
 * is known of these, whatever else the kernel refuses to show. */
static bool is_for_none(const struct selector *s, const char *pattern) {
  return !*pattern && s->attribute != ATTRIBUTE_CGROUP &&
         (CGROUP_ATTRIBUTES >> s->attribute) & 1;
}

static int set_pattern(struct selector *s, const char *pattern,
                       struct config_error *reason) {
  bool has_special = strpbrk(pattern, "*?[");
  int rc = 0;

  if (s->test == SELECT_REGEX)
    return compile_regex(&s->regex, pattern, reason);
  if (s->test == SELECT_PID_FILE && *pattern != '/')
    return config_error_set(reason, "expected the absolute path of a PID file");
  if (s->test == SELECT_GLOB && !is_for_none(s, pattern))
    rc = check_glob(pattern, reason);
  if (rc < 0 || s->attribute != ATTRIBUTE_COMM)
    return rc;
  return s->test == SELECT_GLOB && has_special ? 0
                                               : check_comm(pattern, reason);
}

int selector_init(struct selector *s, const char *option, const char *pattern,
                  struct config_error *reason) {
  int found = selector_find(option), rc;

  *s = (struct selector){.test = SELECT_EXACT, .attribute = ATTRIBUTE_COMM};
  if (found >= 0) {
    s->attribute = (unsigned)found / 2;
    s->test = s->attribute == ATTRIBUTES ? SELECT_PID_FILE
              : found % 2                ? SELECT_REGEX
                                         : SELECT_GLOB;
  }
  s->pattern = strdup(pattern);
  if (!s->pattern)
    return -ENOMEM;
  rc = set_pattern(s, pattern, reason);
  if (rc < 0)
    free(s->pattern);
  return rc;
}

void selector_done(struct selector *s) {
  if (s->test == SELECT_REGEX)
    regfree(&s->regex);
  free(s->pattern);
}

/* User matches a uid too: the name of a user may change or be missing. */
static bool is_uid(const struct selector *s, const struct attributes *id) {
  struct cursor scan = cursor_begin(s->pattern, strlen(s->pattern));
  uint32_t uid;

  return s->attribute == ATTRIBUTE_USER && parse_u32(&scan, &uid) &&
         cursor_is_done(&scan) && uid == id->uid;
}

static int match_regex(const struct selector *s, const char *value,
                       struct captures *captures) {
  struct captures found = {.text = value};
  int rc = regexec(&s->regex, value, CAPTURES, found.match, 0);

  if (rc != 0)
    return rc == REG_NOMATCH ? 0 : -ENOMEM;
  if (captures)
    *captures = found;
  return 1;
}

int selector_match(const struct selector *s, const struct attributes *id,
                   uint32_t pid, struct captures *captures) {
  const char *value;

  if (s->test == SELECT_PID_FILE)
    return s->pid != 0 && s->pid == pid;
  value = id->value[s->attribute];
  if (!value)
    return is_for_none(s, s->pattern);
  if (s->test == SELECT_REGEX)
    return match_regex(s, value, captures);
  if (s->test == SELECT_EXACT)
    return strcmp(s->pattern, value) == 0;
  return fnmatch(s->pattern, value, FNM_NOESCAPE) == 0 || is_uid(s, id);
}

/* False if the pattern ends in the plain name of another program; a regular
 * expression has it between a slash and $. */
static bool could_run(const struct selector *s, const char *comm) {
  bool is_regex = s->test == SELECT_REGEX;
  const char *slash = strrchr(s->pattern, '/');
  const char *name = slash ? slash + 1 : s->pattern;
  size_t len = strcspn(name, is_regex ? "*?[]\\.+(){}|^$" : "*?[]");

  if (strcmp(name + len, is_regex ? "$" : "") != 0 ||
      (is_regex && (!slash || strchr(s->pattern, '|'))))
    return true;
  if (len > COMM_MAX)
    len = COMM_MAX;
  return strlen(comm) == len && memcmp(name, comm, len) == 0;
}

bool selector_could_match(const struct selector *s, const struct glimpse *g) {
  const char *comm = g->id.value[ATTRIBUTE_COMM];

  if (s->attribute == ATTRIBUTES || g->id.value[s->attribute] ||
      !((g->unknown >> s->attribute) & 1))
    return selector_match(s, &g->id, g->pid, NULL) != 0;
  return s->attribute != ATTRIBUTE_EXECUTABLE || !comm || g->may_be_renamed ||
         could_run(s, comm);
}

size_t selector_captures(const struct selector *s) {
  return s->test == SELECT_REGEX ? s->regex.re_nsub : 0;
}
