/*
 * Group names as collectd identifiers, and untrusted bytes as log text.
 *
 * comm, command line and paths are chosen by whoever starts a process. A name
 * made from them must survive as a directory (rrdtool, csv), a tag (InfluxDB)
 * and a label (Prometheus).
 */
#ifndef SMAPS_NAME_H
#define SMAPS_NAME_H

#include <smaps/scan.h>

/* collectd 5's DATA_MAX_NAME_LEN, with the NUL. */
#define NAME_SIZE 128

/*
 * A name under construction: zero it, add to it, finish it. A '/' becomes '_'
 * (one in front is dropped, as collectd's own plugins do), every other byte
 * that is no printable ASCII becomes \xNN.
 */
struct name {
  char text[NAME_SIZE];
  size_t len;    /* of the whole name, also where text holds less */
  bool is_begun; /* something was added, if only a '/' that was dropped */
  uint64_t hash; /* of the whole name */
};

void name_add(struct name *n, const char *text, size_t len);

/*
 * Ends the text. A name of more than 127 bytes keeps the first 110, then '~'
 * and 16 hexadecimal digits of a hash of the whole, so that two long names with
 * the same beginning stay apart. False where the name is empty.
 */
bool name_finish(struct name *n);

/*
 * Writes text to ret for a log line: printable ASCII as it is, anything else,
 * the quotation mark and the backslash as \xNN; cut with "..." where it does
 * not fit `size`, which is 8 at least. Returns ret.
 */
const char *name_escape(const char *text, size_t len, char *ret, size_t size);

#endif
