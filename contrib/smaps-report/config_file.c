/* SPDX-License-Identifier: MIT */
#include "config_file.h"

#include "config.h"
#include "liboconfig/aux_types.h"
#include "memory.h"

#include <daemon/plugin.h>

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <strings.h>
#include <sys/stat.h>
#include <wordexp.h>

struct reader {
  const struct config_visitor *visitor;
  unsigned includes;    /* that are open */
  unsigned directories; /* that are open: links may form a circle */
};

static bool add_words(struct reader *r, const char *words, const char *filter);

/* After a newline the parser is already on the next line. */
void oconfig_mistake(const char *file, int line, const char *near,
                     const char *words) {
  int behind = line > 1 && strcmp(near, "<newline>") == 0;

  ERROR("%s:%d: near `%s': %s", file, line - behind, near, words);
}

/* Warns once for each line. */
void oconfig_ignored(const char *file, int line, const char *text) {
  static char last[PATH_MAX + 16];
  char place[sizeof(last)];

  snprintf(place, sizeof(place), "%s:%d", file, line);
  if (isspace((unsigned char)*text) || strcmp(place, last) == 0)
    return;
  strcpy(last, place);
  WARNING("%s: collectd ignores the character %s outside quotes: write the "
          "value in quotes",
          place, text);
}

static bool has_lost_backslash;

bool config_file_lost_backslash(void) { return has_lost_backslash; }

/* Names and expressions of this plugin need their backslashes, and so do the
 * names of its groups in thresholds. Other plugins may have meant it. */
static bool is_ours(const oconfig_item_t *block) {
  const char *plugin;

  if (!block->key || strcasecmp(block->key, "Plugin") != 0 ||
      block->values_num != 1 || block->values[0].type != OCONFIG_TYPE_STRING)
    return block->key && strcasecmp(block->key, "Threshold") == 0;
  plugin = block->values[0].value.string;
  return strcasecmp(plugin, "smaps") == 0 ||
         strcasecmp(plugin, "threshold") == 0;
}

void oconfig_unescaped(const char *file, int line, const oconfig_item_t *option,
                       char c, const oconfig_item_t *outer) {
  char text[512];

  if (!is_ours(outer))
    return;
  has_lost_backslash = true;
  config_describe(option, text, sizeof(text));
  WARNING("%s:%d: %s: collectd has removed the backslash before %c: write "
          "\\\\%c",
          file, line, text, c, c);
}

static bool refuse(const char *path, const char *why) {
  ERROR("%s: %s", path, why);
  return false;
}

/* ---- Include ---- */

static bool is_string(const oconfig_item_t *item) {
  return item->values_num == 1 && item->values[0].type == OCONFIG_TYPE_STRING;
}

/* The last Filter of an <Include> that has one wins. */
static const char *find_filter(const oconfig_item_t *include) {
  const char *filter = NULL;

  for (int i = 0; i < include->children_num; i++)
    if (strcasecmp(include->children[i].key, "Filter") == 0 &&
        is_string(&include->children[i]))
      filter = include->children[i].values[0].value.string;
  return filter;
}

static bool add_include(struct reader *r, const oconfig_item_t *include,
                        const char *path) {
  bool is_good;

  if (!is_string(include))
    return refuse(path, "Include: expected one string");
  if (r->includes == CONFIG_FILE_DEPTH - 1)
    return refuse(path, "Include: expected at most 8 files in a chain");
  r->includes++;
  is_good = add_words(r, include->values[0].value.string, find_filter(include));
  r->includes--;
  return is_good;
}

static bool add_items(struct reader *r, const oconfig_item_t *root,
                      const char *path) {
  bool is_good = true;

  for (int i = 0; i < root->children_num; i++) {
    const oconfig_item_t *item = &root->children[i];

    if (strcasecmp(item->key, "Include") == 0)
      is_good &= add_include(r, item, path);
    else
      r->visitor->item(r->visitor->context, item, path);
  }
  return is_good;
}

/* ---- files and directories ---- */

/* NULL if the scanner can read it, which would end the program otherwise. A
 * device such as /dev/zero has no end. /dev/null is empty. */
static const char *why_unreadable(const char *path) {
  struct stat st, null;

  if (stat(path, &st) < 0 || access(path, R_OK) < 0)
    return strerror(errno);
  if (S_ISDIR(st.st_mode))
    return strerror(EISDIR);
  if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) ||
      (S_ISCHR(st.st_mode) && stat("/dev/null", &null) == 0 &&
       st.st_rdev == null.st_rdev))
    return NULL;
  return "expected a file or a pipe";
}

static bool add_file(struct reader *r, const char *path) {
  const char *why = why_unreadable(path);
  oconfig_item_t *root;
  bool is_good;

  if (why)
    return refuse(path, why);
  root = oconfig_parse_file(path);
  /* oconfig_mistake() has logged it. */
  if (!root)
    return false;
  is_good = add_items(r, root, path);
  oconfig_free(root);
  return is_good;
}

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* The daemon expands the name of each file once more; so do we. */
static bool add_directory(struct reader *r, const char *path,
                          const char *filter) {
  struct dirent **entries;
  int n = scandir(path, &entries, is_visible, compare_names);
  bool is_good = n >= 0 || refuse(path, strerror(errno));

  r->directories++;
  for (int i = 0; i < n; i++) {
    char *inner = memory_format("%s/%s", path, entries[i]->d_name);

    is_good &= add_words(r, inner, filter);
    free(inner);
    free(entries[i]);
  }
  if (n >= 0)
    free(entries);
  r->directories--;
  return is_good;
}

static bool passes(const char *path, const char *filter) {
  const char *slash = strrchr(path, '/');

  return !filter || fnmatch(filter, slash ? slash + 1 : path, 0) == 0;
}

/* The daemon ignores a missing file. */
static bool add_path(struct reader *r, const char *path, const char *filter) {
  struct stat st;

  if (stat(path, &st) < 0) {
    WARNING("%s: %s", path, strerror(errno));
    return true;
  }
  if (S_ISDIR(st.st_mode))
    return r->directories < CONFIG_FILE_DEPTH ? add_directory(r, path, filter)
                                              : refuse(path, strerror(ELOOP));
  if (!S_ISREG(st.st_mode))
    return refuse(path, "expected a file or a directory");
  return passes(path, filter) ? add_file(r, path) : true;
}

static int compare_words(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_words(struct reader *r, const char *words, const char *filter) {
  wordexp_t found;
  bool is_good = true;

  if (wordexp(words, &found, WRDE_NOCMD) != 0)
    return refuse(words, "cannot be expanded by wordexp(3)");
  qsort(found.we_wordv, found.we_wordc, sizeof(*found.we_wordv), compare_words);
  for (size_t i = 0; i < found.we_wordc; i++)
    is_good &= add_path(r, found.we_wordv[i], filter);
  wordfree(&found);
  return is_good;
}

bool config_file_read(const char *path, const struct config_visitor *visitor) {
  struct reader r = {.visitor = visitor};

  return add_file(&r, path);
}
