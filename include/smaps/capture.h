/*
 * The evidence for one alarm: which members of the group use most, and what
 * they map. A smaps costs more than a rollup, so it is gathered within a budget
 * of time, over as many cycles as that takes.
 */
#ifndef SMAPS_CAPTURE_H
#define SMAPS_CAPTURE_H

#include <smaps/reader.h>
#include <smaps/snapshot.h>

struct capture_member {
  uint32_t pid;
  uint64_t starttime_ticks;
  uint64_t pss; /* or what there is in its place */
};

/* Zero while there is none. */
struct capture {
  bool is_running;
  struct alarm alarm;
  uint64_t time_ns; /* of the scene that it began with */
  struct json json;
  struct mapping_table all;
  struct capture_member *members; /* the largest first */
  size_t n, next;
  uint64_t in_group; /* how many there are, as its ps_count has it */
  uint64_t written;  /* how many of them are in the document */
};

/*
 * Begins one, with the sums as they are in this scene. -ENOENT where there is
 * no such group, or -ENOMEM; then there is none.
 */
int capture_begin(struct capture *c, const struct scene *s,
                  const struct alarm *alarm);

/* Reads the next members: one at least, and as many as take `budget_ns`. True
 * when all are read. */
bool capture_go_on(struct capture *c, const struct scene *s,
                   struct reader *reader, uint64_t budget_ns);

/* The document, to be freed by the caller, or a negative errno. Ends the
 * capture. */
int capture_finish(struct capture *c, const struct settings *settings,
                   char **ret_text, size_t *ret_len);

/* Drops it, if there is one. */
void capture_done(struct capture *c);

#endif
