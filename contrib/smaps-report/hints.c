/* SPDX-License-Identifier: MIT */
#include "hints.h"

#include <daemon/collectd.h>
#include <daemon/plugin.h>

#include <ctype.h>
#include <errno.h>
#include <pwd.h>

#define CGROUPS "/sys/fs/cgroup"

static bool is_number(const char *text) {
  return text[strspn(text, "0123456789")] == '\0';
}

/* False if a directory without rights hides the path. */
static bool is_missing(const char *path) {
  return access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

static bool is_missing_cgroup(const char *path) {
  char full[PATH_MAX];

  snprintf(full, sizeof(full), CGROUPS "%s", path);
  return is_missing(full);
}

/* The kernel shows the path of a program without symbolic links. */
static const char *judge_executable(const char *path) {
  char real[PATH_MAX];

  if (is_missing(path))
    return "does not exist";
  return realpath(path, real) && strcmp(real, path) != 0
             ? "matches nothing: a symbolic link is on the way (readlink -f)"
             : NULL;
}

/* Why a name without a wildcard matches no process now, or NULL. In version 1
 * of cgroups a path may be in any of several hierarchies, so it is not checked.
 */
static const char *judge_presence(enum attribute attribute, const char *name) {
  switch ((int)attribute) {
  case ATTRIBUTE_USER:
    return getpwnam(name) || is_number(name) ? NULL : "is not a user here";
  case ATTRIBUTE_EXECUTABLE:
    return judge_executable(name);
  case ATTRIBUTE_CGROUP:
    return is_missing_cgroup(name) &&
                   access(CGROUPS "/cgroup.controllers", F_OK) == 0
               ? "does not exist below " CGROUPS
               : NULL;
  default:
    return NULL;
  }
}

static const char *judge_glob(enum attribute attribute, const char *glob,
                              bool is_idle) {
  bool is_path =
      attribute == ATTRIBUTE_EXECUTABLE || attribute == ATTRIBUTE_CGROUP;

  if (!*glob) /* takes what has none */
    return NULL;
  if (is_path && !strchr("/*?[", *glob))
    return "matches nothing: a path begins with a slash";
  if (attribute == ATTRIBUTE_CGROUP &&
      strncmp(glob, CGROUPS "/", strlen(CGROUPS "/")) == 0)
    return "matches nothing: leave out " CGROUPS;
  if (strstr(glob, "\\\\"))
    return "has two backslashes in a row after collectd has removed the "
           "others: "
           "a backslash is a letter in a glob, so write two for one in a name";
  if (strstr(glob, "\\*") || strstr(glob, "\\?") || strstr(glob, "\\["))
    return "has a backslash before a wildcard, which it does not take away: "
           "write [*], [?] or [[] for the character itself";
  if (strpbrk(glob, "*?["))
    return NULL;
  if (attribute == ATTRIBUTE_UNIT && !strchr(glob, '.'))
    return "lacks a suffix such as .service";
  if (attribute == ATTRIBUTE_SLICE && !strchr(glob, '.'))
    return "lacks the suffix .slice";
  return is_idle ? judge_presence(attribute, glob) : NULL;
}

/* The end of a set after its '[', or of the text. */
static const char *skip_set(const char *p) {
  p += *p == '^';
  p += *p == ']';
  return p + strcspn(p, "]");
}

/* Syntax of Perl that POSIX takes for something else. */
static const char *judge_regex(const char *p) {
  for (; *p; p++) {
    if (*p == '\\' && p[1] && strchr("dD", p[1]))
      return "has \\d, which matches the letter d: write [0-9]";
    if (*p == '\\' && isalpha((unsigned char)p[1]) && !strchr("wWsSbB", p[1]))
      return "has a backslash before a letter, which is then that letter: "
             "write four backslashes for one in a name (x2d)";
    if (*p == '\\' && p[1])
      p++;
    else if (*p == '[' && !*(p = skip_set(p + 1)))
      break;
    else if (strchr("*+?}", *p) && p[1] == '?')
      return "has a lazy repetition, which POSIX does not know: leave out "
             "the ? after it";
  }
  return NULL;
}

/* Valid until the next call. */
static const char *judge_pid_file(const struct selector *s, bool is_idle) {
  static char text[256];

  if (is_idle && is_missing(s->pattern))
    return "does not exist";
  if (s->doubt == PID_BELIEVED || (s->doubt == PID_IS_NOBODY && !is_idle))
    return NULL;
  snprintf(text, sizeof(text), "names process %u, but %s", s->claim.number,
           pid_doubt_words[s->doubt]);
  return text;
}

static const char *judge(const struct selector *s, bool is_idle) {
  switch (s->test) {
  case SELECT_GLOB:
    return judge_glob(s->attribute, s->pattern, is_idle);
  case SELECT_REGEX:
    return judge_regex(s->pattern);
  case SELECT_PID_FILE:
    return judge_pid_file(s, is_idle);
  case SELECT_EXACT:
  default:
    return NULL;
  }
}

void hints_log(const struct settings *settings, const bool *is_idle,
               bool averages_mapcounts) {
  const char *root = settings->container_root;

  if (averages_mapcounts)
    WARNING("this kernel divides all pages of a large folio by the average of "
            "their mappings (CONFIG_NO_PAGE_MAPCOUNT): PSS of processes that "
            "share a part of one does not add up; see CAVEATS in "
            "collectd-smaps(5)");

  if (root && is_missing(root))
    WARNING("ContainerRoot \"%s\" does not exist", root);
  for (size_t i = 0; i < settings->n_rules; i++)
    for (size_t j = 0; j < settings->rules[i].n_selectors; j++) {
      const struct rule *r = &settings->rules[i];
      const struct selector *s = &r->selectors[j];
      const char *why = judge(s, is_idle[i]);

      if (why)
        WARNING("%s: \"%s\" %s", r->text ? r->text : "a rule", s->pattern, why);
    }
}

void hints_log_text(const char *text) { WARNING("%s", text); }
