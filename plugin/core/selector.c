#include <smaps/selector.h>

#include <errno.h>
#include <fnmatch.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PID_FILE "PidFile"
#define MATCH_SUFFIX "Match"
#define COMM_MAX 15

static const char *const attribute_option[ATTRIBUTES] = {
    [ATTRIBUTE_COMM] = "Comm",
    [ATTRIBUTE_COMMAND_LINE] = "CommandLine",
    [ATTRIBUTE_EXECUTABLE] = "Executable",
    [ATTRIBUTE_USER] = "User",
    [ATTRIBUTE_CGROUP] = "Cgroup",
    [ATTRIBUTE_UNIT] = "Unit",
    [ATTRIBUTE_SLICE] = "Slice",
    [ATTRIBUTE_CONTAINER] = "Container",
};

const char *const selector_options[] = {"Comm",        "CommMatch",
                                        "CommandLine", "CommandLineMatch",
                                        "Executable",  "ExecutableMatch",
                                        "User",        "UserMatch",
                                        "Cgroup",      "CgroupMatch",
                                        "Unit",        "UnitMatch",
                                        "Slice",       "SliceMatch",
                                        "Container",   "ContainerMatch",
                                        PID_FILE,      NULL};

/* "CommandLineMatch" is CommandLine by regular expression. */
static bool find_option(const char *option, enum attribute *attribute,
                        enum selector_test *test) {
  for (int i = 0; i < ATTRIBUTES; i++) {
    const char *name = attribute_option[i];
    size_t len = strlen(name);

    if (strncasecmp(option, name, len) != 0)
      continue;
    *attribute = (enum attribute)i;
    *test = option[len] ? SELECT_REGEX : SELECT_GLOB;
    if (!option[len] || strcasecmp(option + len, MATCH_SUFFIX) == 0)
      return true;
  }
  return false;
}

/*
 * Where a set in brackets ends, from behind its '['; NULL where it does not. A
 * ']' is a member of the set where it comes first, and "[:alpha:]" and its like
 * may hold one as well. To a glob '!' is as good as '^', and a backslash makes
 * a letter of what follows; to a regular expression both are members.
 */
static const char *set_end(const char *p, bool is_glob) {
  if (*p == '^' || (is_glob && *p == '!'))
    p++;
  if (*p == ']')
    p++;
  for (; *p && *p != ']'; p++) {
    const char *class_end;
    char kind = p[1];

    if (is_glob && *p == '\\' && kind) {
      p++;
      continue;
    }
    if (*p != '[' || !kind || !strchr(":.=", kind))
      continue;
    class_end = strchr(p + 2, kind);
    if (class_end && class_end[1] == ']')
      p = class_end + 1;
  }
  return *p ? p : NULL;
}

/* fnmatch(3) takes any pattern, and a '[' that is never closed as a letter.
 * Nobody means that. */
static int check_glob(const char *pattern, struct reason *reason) {
  if (!*pattern)
    return reason_set(reason, "expected a shell glob that is not empty");
  for (const char *p = pattern; *p; p++) {
    if (*p == '\\' && !p[1])
      return reason_set(reason, "expected a shell glob: nothing follows the "
                                "backslash at its end");
    if (*p == '\\')
      p++;
    else if (*p == '[' && !(p = set_end(p + 1, true)))
      return reason_set(reason, "expected a shell glob: '[' without its ']'");
  }
  return 0;
}

/* The kernel cuts comm there, so that a longer word is never met. */
static int check_comm(const char *pattern, struct reason *reason) {
  if (strlen(pattern) <= COMM_MAX || strpbrk(pattern, "*?[\\"))
    return 0;
  return reason_set(reason,
                    "expected a name of at most %d bytes, to which the kernel "
                    "cuts it; select by CommandLineMatch or Executable instead",
                    COMM_MAX);
}

/* Names are bytes: another plugin may have set the daemon's locale to one in
 * which not every byte is a letter. */
static int compile_in_c_locale(regex_t *regex, const char *pattern) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  locale_t before;
  int r;

  if (!c)
    return REG_ESPACE;
  before = uselocale(c);
  r = regcomp(regex, pattern, REG_EXTENDED);
  uselocale(before);
  freelocale(c);
  return r;
}

/*
 * A back-reference takes glibc's regexec(3) exponential time: "(a*)\1b" five
 * seconds for a thousand letters a, which anybody can put into a command line.
 * Without one it is the square of the length at worst, some 50 to 200 ms for
 * the 4 KiB that we look at. (POSIX has none in extended expressions.)
 */
static bool has_back_reference(const char *p) {
  for (; *p; p++) {
    if (*p == '[' && !(p = set_end(p + 1, false)))
      return false;
    if (*p != '\\')
      continue;
    if (p[1] >= '1' && p[1] <= '9')
      return true;
    p += p[1] != '\0';
  }
  return false;
}

static int compile_regex(regex_t *regex, const char *pattern,
                         struct reason *reason) {
  char message[128];
  int r;

  if (!*pattern)
    return reason_set(
        reason, "expected a POSIX extended regular expression that is not "
                "empty");
  if (has_back_reference(pattern))
    return reason_set(reason,
                      "expected a POSIX extended regular expression, without "
                      "back-references such as \\1: a process could choose a "
                      "name that takes hours to match");
  r = compile_in_c_locale(regex, pattern);
  if (r == 0)
    return 0;
  regerror(r, regex, message, sizeof(message));
  return reason_set(reason, "expected a POSIX extended regular expression: %s",
                    message);
}

static int check_pid_file(const char *path, struct reason *reason) {
  if (*path != '/')
    return reason_set(reason, "expected the absolute path of a PID file");
  return 0;
}

int selector_init(struct selector *s, const char *option, const char *pattern,
                  struct reason *reason) {
  struct selector made = {.test = SELECT_PID_FILE, .attribute = ATTRIBUTES};
  int r;

  if (strcasecmp(option, PID_FILE) != 0 &&
      !find_option(option, &made.attribute, &made.test))
    return -ENOENT;
  made.pattern = strdup(pattern);
  if (!made.pattern)
    return -ENOMEM;
  if (made.test == SELECT_REGEX)
    r = compile_regex(&made.regex, pattern, reason);
  else if (made.test == SELECT_GLOB)
    r = check_glob(pattern, reason);
  else
    r = check_pid_file(pattern, reason);
  if (r == 0 && made.test == SELECT_GLOB && made.attribute == ATTRIBUTE_COMM)
    r = check_comm(pattern, reason);
  if (r < 0) {
    free(made.pattern);
    return r;
  }
  *s = made;
  return 0;
}

int selector_init_process(struct selector *s, const char *comm,
                          struct reason *reason) {
  char *pattern;

  if (!*comm || strlen(comm) > COMM_MAX)
    return reason_set(reason,
                      "expected a name of 1 to %d bytes, to which the kernel "
                      "cuts it; select by ProcessMatch instead",
                      COMM_MAX);
  pattern = strdup(comm);
  if (!pattern)
    return -ENOMEM;
  *s = (struct selector){
      .test = SELECT_EXACT, .attribute = ATTRIBUTE_COMM, .pattern = pattern};
  return 0;
}

void selector_done(struct selector *s) {
  if (s->test == SELECT_REGEX)
    regfree(&s->regex);
  free(s->pattern);
}

/* A process is as good as its user's number: names come and go. */
static bool is_uid(const struct selector *s, const struct identity *id) {
  struct scan scan = scan_begin(s->pattern, strlen(s->pattern));
  uint32_t uid;

  return s->attribute == ATTRIBUTE_USER && scan_u32(&scan, &uid) &&
         scan_is_done(&scan) && uid == id->uid;
}

static int match_regex(const struct selector *s, const char *value,
                       struct captures *captures) {
  struct captures found = {.text = value};
  int r = regexec(&s->regex, value, CAPTURES, found.match, 0);

  if (r != 0)
    return r == REG_NOMATCH ? 0 : -ENOMEM;
  if (captures)
    *captures = found;
  return 1;
}

int selector_match(const struct selector *s, const struct identity *id,
                   uint32_t pid, struct captures *captures) {
  const char *value;

  if (s->test == SELECT_PID_FILE)
    return s->pid != 0 && s->pid == pid;
  value = id->value[s->attribute];
  if (!value)
    return 0;
  if (s->test == SELECT_REGEX)
    return match_regex(s, value, captures);
  if (s->test == SELECT_EXACT)
    return strcmp(s->pattern, value) == 0;
  return fnmatch(s->pattern, value, 0) == 0 || is_uid(s, id);
}

size_t selector_captures(const struct selector *s) {
  return s->test == SELECT_REGEX ? s->regex.re_nsub : 0;
}
