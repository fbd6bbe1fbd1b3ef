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
  EXTRACT_BLOCKS,  /* <Plugin smaps>, without options that write files */
  EXTRACT_NAMED,   /* <Plugin smaps>, whole and named after its file */
};

/* The line before a block of EXTRACT_NAMED: where the block begins. */
#define EXTRACT_MARK "#smaps-report:"

/*
 * Writes the wanted lines to `out`, and calls `include` for each Include, with
 * the pattern of the files and the Filter or NULL.
 *
 * In EXTRACT_BLOCKS blocks lose StateFile, StateInterval, StateAtStart and
 * <Capture>. In EXTRACT_NAMED they begin with two lines, in which the source is
 * escaped and the number is that of the block's first line in it:
 *
 *   #smaps-report: 12 /etc/collectd/collectd.conf
 *   <Plugin smaps "/etc/collectd/collectd.conf">
 *
 * Returns 0, the first negative result of `include`, or, in EXTRACT_NAMED,
 * -EBADMSG for a text that ends in a block.
 */
int extract_text(struct span text, const char *source, enum extract_what what,
                 FILE *out,
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
