/* SPDX-License-Identifier: MIT */
#include "other_plugins.h"

#include "memory.h"

#include <daemon/plugin.h>

#include <dirent.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_option(const oconfig_item_t *item, const char *key) {
  return strcasecmp(item->key, key) == 0 && item->values_num > 0 &&
         item->values[0].type == OCONFIG_TYPE_STRING;
}

bool other_plugins_loads_all(const oconfig_item_t *item) {
  const oconfig_value_t *v = item->values;

  return strcasecmp(item->key, "AutoLoadPlugin") == 0 && item->values_num > 0 &&
         (v->type == OCONFIG_TYPE_BOOLEAN
              ? v->value.boolean
              : v->type == OCONFIG_TYPE_STRING &&
                    (strcasecmp(v->value.string, "true") == 0 ||
                     strcasecmp(v->value.string, "yes") == 0 ||
                     strcasecmp(v->value.string, "on") == 0));
}

/* ---- the libraries of a plugin ---- */

/* Its words about the libraries of the file are the output, in English. */
static void become_ldd(const char *file, int output) {
  char *const environment[] = {NULL};

  if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
    execle("/usr/bin/ldd", "ldd", file, (char *)NULL, environment);
  _exit(1);
}

/* The line about a missing library: "\tLIBRARY => not found" (glibc 2.36),
 * "Error loading shared library LIBRARY: ..." (musl 1.2). musl complains of the
 * daemon's functions, too. */
static char *find_complaint(FILE *said) {
  char *line = NULL;
  size_t size = 0;

  while (getline(&line, &size, said) >= 0)
    if (strstr(line, "=> not found") || strstr(line, "shared librar")) {
      line[strcspn(line, "\n")] = '\0';
      return line;
    }
  free(line);
  return NULL;
}

/* The caller frees it. NULL if none is missing, or that cannot be found out. */
static char *find_missing_library(const char *file) {
  char *line = NULL;
  FILE *said;
  int ends[2];
  pid_t child;

  if (pipe2(ends, O_CLOEXEC) < 0)
    return NULL;
  child = fork();
  if (child == 0)
    become_ldd(file, ends[1]);
  close(ends[1]);
  said = fdopen(ends[0], "r");
  if (child > 0 && said)
    line = find_complaint(said);
  if (said)
    fclose(said);
  else
    close(ends[0]);
  while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
    ;
  return line;
}

/* ---- the file of a plugin ---- */

/* The daemon ignores the case of letters. The caller frees it; NULL if there is
 * none. */
static char *find_file(DIR *directory, const char *path, const char *name) {
  char *wanted = memory_format("%s.so", name), *found = NULL;
  const struct dirent *entry;

  while (!found && (entry = readdir(directory)))
    if (strcasecmp(entry->d_name, wanted) == 0)
      found = memory_format("%s/%s", path, entry->d_name);
  free(wanted);
  return found;
}

static const char *plugin_directory(const struct other_plugins *o) {
  return o->directory ? o->directory : PLUGINDIR;
}

bool other_plugins_has_daemon(const struct other_plugins *o) {
  return access(plugin_directory(o), F_OK) == 0;
}

static void check_plugin(const struct other_plugins *o, const char *name,
                         const char *config) {
  const char *path = plugin_directory(o);
  DIR *directory = opendir(path);
  char *file, *missing;

  if (!directory)
    return;
  file = find_file(directory, path, name);
  closedir(directory);
  /* Ours may be checked before it is installed. */
  if (!file && strcasecmp(name, "smaps") != 0)
    ERROR("%s: LoadPlugin \"%s\": expected the file %s/%s.so: install it, or "
          "remove the line; without it collectd does not start",
          config, name, path, name);
  missing = file ? find_missing_library(file) : NULL;
  if (missing)
    ERROR("%s: LoadPlugin \"%s\": install the library, or remove the line; "
          "without it collectd does not start: %s",
          config, name, missing + strspn(missing, "\t"));
  free(missing);
  free(file);
}

void other_plugins_add(struct other_plugins *o, const oconfig_item_t *item,
                       const char *path) {
  o->loads_all |= other_plugins_loads_all(item);
  if (is_option(item, "PluginDir")) {
    free(o->directory);
    o->directory = memory_format("%s", item->values[0].value.string);
  } else if (is_option(item, "LoadPlugin") ||
             (o->loads_all && is_option(item, "Plugin"))) {
    check_plugin(o, item->values[0].value.string, path);
  }
}

void other_plugins_done(struct other_plugins *o) { free(o->directory); }
