/*
 * What a configuration of collectd has for the smaps plugin.
 *
 * Not a parser of collectd's language: it knows lines, blocks, strings and
 * comments, and copies the lines that are wanted as they stand. Whether they
 * are right is for the plugin to say.
 */
#ifndef REPORT_EXTRACT_H
#define REPORT_EXTRACT_H

#include <smaps/reason.h>
#include <smaps/scan.h>

#include <stdio.h>

/* A plugin is looked for when its LoadPlugin is met: so what says where stands
 * in front of that, and the blocks behind. */
enum extract_what {
  EXTRACT_GLOBALS, /* Hostname, PluginDir, TypesDB */
  EXTRACT_BLOCKS,  /* <Plugin smaps> */
};

/*
 * Writes these to `out`, the blocks without StateFile, StateInterval and
 * <Capture>. `include` is called for each Include, with the pattern of the
 * files and the Filter or NULL. Returns 0, or what `include` has that is
 * negative.
 */
int extract_text(struct span text, enum extract_what what, FILE *out,
                 int (*include)(void *context, const char *pattern,
                                const char *filter),
                 void *context);

/*
 * The same with a file and all that it includes, up to eight deep as in
 * collectd. Returns 0 or a negative errno with the reason, which names the
 * file.
 */
int extract_file(const char *path, enum extract_what what, FILE *out,
                 struct reason *reason);

#endif
