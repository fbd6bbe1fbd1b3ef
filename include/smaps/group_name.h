/*
 * Group names as collectd identifiers.
 *
 * Any user can choose the comm, command line and path of a process. A name made
 * from them must be valid as a directory (rrdtool, csv), a tag (InfluxDB) and a
 * label (Prometheus).
 */
#ifndef SMAPS_GROUP_NAME_H
#define SMAPS_GROUP_NAME_H

#include <smaps/text.h>

/* DATA_MAX_NAME_LEN of collectd 5, with the NUL. */
#define GROUP_NAME_SIZE 128

/* The instance of the host's own values: no group has this name. */
#define GROUP_NAME_OF_HOST "host"

/*
 * A name under construction: zero it, add to it, finish it. A '/' becomes '_'
 * (a leading '/' is dropped, as in collectd's own plugins); a byte that is not
 * printable ASCII becomes \xNN.
 */
struct group_name {
  char text[GROUP_NAME_SIZE];
  size_t len;    /* of the whole name, even if text holds less */
  bool is_begun; /* text was added, even if only a dropped '/' */
  uint64_t hash; /* of the whole name */
};

void group_name_add(struct group_name *n, const char *text, size_t len);

/*
 * Ends the text. A name of more than 127 bytes keeps the first 110, then '~'
 * and 16 hexadecimal digits of a hash of the whole, so two long names with the
 * same beginning stay distinct. False if the name is empty or that of the host.
 */
bool group_name_finish(struct group_name *n);

#endif
