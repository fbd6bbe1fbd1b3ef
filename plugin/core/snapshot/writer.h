/* SPDX-License-Identifier: MIT */
/*
 * Writes documents to disk on its own thread: if a disk hangs, only this thread
 * waits.
 */
#ifndef SMAPS_WRITER_H
#define SMAPS_WRITER_H

#include "snapshot/document.h"
#include <smaps/settings.h>
#include <smaps/store.h>

struct resume;
struct writer;

/*
 * Copies what it takes of the settings: StateFile, StateHistory (a directory
 * for the first state of each 5 minutes) and the directory of captures with its
 * limits. 0 or -ENOMEM. The first document starts the thread.
 *
 * done() gets the result of each document, and of the history only the first
 * failure of an hour.
 * It is called on the writer's thread, where it may block; on the thread of
 * writer_submit() for a document that cannot be queued.
 */
int writer_new(const struct settings *settings,
               void (*done)(const struct document *result),
               struct writer **ret);

/*
 * Queues the document and owns its text from then on. A state replaces the
 * state that is queued. If the queue is full, or if no thread can be started,
 * the document is dropped and done() gets the error (-EBUSY for a full queue).
 */
void writer_submit(struct writer *w, const struct document *d);

/*
 * A DOCUMENT_RESUME was submitted before any state: waits at most `timeout_ns`
 * until it is read. False if it is not; else *ret is what it has, once, and the
 * caller's, or NULL.
 */
bool writer_recalled(struct writer *w, uint64_t timeout_ns,
                     struct resume **ret);

/* The cycle_ns of the state that is in the state file; 0: none was written. */
uint64_t writer_state_ns(struct writer *w);

/*
 * Waits at most `timeout_ns` until all documents are written and the thread has
 * ended. After a timeout the thread frees the writer when it ends; done() may
 * then be called once more. w may be NULL.
 */
void writer_free(struct writer *w, uint64_t timeout_ns);

#endif
