/* Whether the plugin could write the files of snapshots. Nothing is made or
 * changed. */
#ifndef SMAPS_PLACE_H
#define SMAPS_PLACE_H

#include <smaps/config_error.h>

/* 0, or -EINVAL with the cause why store_replace() cannot write the file. */
int place_check_file(const char *path, struct config_error *cause);

/* The same for store_add() and the directory of captures. */
int place_check_directory(const char *path, struct config_error *cause);

#endif
