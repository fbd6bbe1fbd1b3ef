/*
 * Writes finished documents to disk, on a thread of its own: a disk can hang,
 * and then nobody waits for it but this thread.
 */
#ifndef SMAPS_SCRIBE_H
#define SMAPS_SCRIBE_H

#include <limits.h>

#include <smaps/name.h>
#include <smaps/store.h>

enum document_kind {
  DOCUMENT_STATE,   /* replaces the state file */
  DOCUMENT_CAPTURE, /* is added to the captures */
};

struct document {
  enum document_kind kind;
  char *text; /* allocated */
  size_t len;
  uint64_t time_ns;        /* since the Epoch */
  char subject[NAME_SIZE]; /* of a capture: its group */
};

/* What became of a document. */
struct written {
  enum document_kind kind;
  const char *subject;
  const char *path; /* where it is, or where it was to be */
  int error;        /* 0 or a negative errno */
};

struct scribe_settings {
  const char *state_file; /* NULL for none, as for the next */
  const char *directory;
  uint64_t max_files, max_bytes;
  /* Called on the scribe's thread, and may take its time; or, where there is no
   * place for a document, on that of scribe_give(). */
  void (*done)(const struct written *w);
};

struct scribe;

/* Copies the settings. -ENOMEM. The thread starts with the first document. */
int scribe_new(const struct scribe_settings *settings, struct scribe **ret);

/*
 * Takes the document, its text included. It is dropped, with -EBUSY for done(),
 * where as many wait already as may; a state replaces one that waits.
 */
void scribe_give(struct scribe *s, const struct document *d);

/*
 * Lets the thread finish what it has been given, and ends it. One that does not
 * come to an end in `patience_ns` is left behind, and frees what is its own
 * when it does; done() may be called once more then. s may be NULL.
 */
void scribe_free(struct scribe *s, uint64_t patience_ns);

#endif
