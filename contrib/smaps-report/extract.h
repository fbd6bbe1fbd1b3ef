/*
 * Extracts the options of the smaps plugin from a configuration of collectd.
 *
 * This is no parser of collectd's language. It recognises lines, blocks,
 * strings and comments, and copies the wanted lines unchanged; the plugin
 * checks them.
 */
#ifndef REPORT_EXTRACT_H
#define REPORT_EXTRACT_H

#include <smaps/config_error.h>
#include <smaps/text.h>

#include <stdio.h>

/* collectd loads a plugin at its LoadPlugin line: the options that say where to
 * find it stand before that line, the blocks after it. */
enum extract_what {
  EXTRACT_GLOBALS, /* Hostname, PluginDir, TypesDB */
  EXTRACT_BLOCKS,  /* <Plugin smaps> */
};

/*
 * Writes the wanted lines to `out`; blocks lose StateFile, StateInterval and
 * <Capture>. Calls `include` for each Include, with the pattern of the files
 * and the Filter or NULL. Returns 0, or the first negative result of `include`.
 */
int extract_text(struct span text, enum extract_what what, FILE *out,
                 int (*include)(void *context, const char *pattern,
                                const char *filter),
                 void *context);

/*
 * Extracts from a file and the files it includes, up to eight deep as in
 * collectd. Returns 0, or a negative errno with the reason and the file.
 */
int extract_file(const char *path, enum extract_what what, FILE *out,
                 struct config_error *reason);

#endif
