/* The causes of the error of a group's PSS (smaps-snapshot(5)), in words. */
#ifndef REPORT_CAUSE_H
#define REPORT_CAUSE_H

#include "document.h"
#include "text.h"

/* The key of each cause, and the words after "2 % because". */
#define CAUSE_TABLE(X)                                                         \
  X(files, "files or shared memory were mapped or unmapped")                   \
  X(relatives, "processes that share memory with members started or ended")    \
  X(copies, "memory shared since a fork was copied on write, or unmapped")     \
  X(fork, "members were forked and have not been read since")                  \
  X(lent, "members share memory with children that they have forked")          \
  X(swap, "memory went to swap or came back")                                  \
  X(time,                                                                      \
    "readings are old: others may share the memory by now, or no longer")      \
  X(ksm, "the kernel merged equal pages (KSM), or separated them")             \
  X(reading,                                                                   \
    "memory changed while it was read, or unlisted processes share it")        \
  X(statm, "the counters of this kernel are not exact")                        \
  X(sample, "only some pages of large members were read")                      \
  X(guess, "members were never read and are guessed from the others")          \
  X(ended, "members ended while they were measured")                           \
  X(unidentified, "processes that could not be identified may be members")

#define CAUSE_NUMBER(name, words) CAUSE_OF_##name,
enum cause { CAUSE_TABLE(CAUSE_NUMBER) CAUSES };
#undef CAUSE_NUMBER

/* The parts of an error. */
struct causes {
  uint64_t bytes[CAUSES];
};

struct cause_part {
  const char *name; /* the key */
  const char *words;
  uint64_t bytes;
};

/* Lists the parts of a tenth of the error or more, the largest first. Returns
 * their number: 0 if the parts or PSS are unknown, or if the error is less than
 * a thousandth of PSS. */
size_t cause_list(const struct group *g, struct cause_part ret[CAUSES]);

/* Adds "1.5 %": the bytes by the group's PSS, which is known and not 0. */
void cause_add_percent(struct text *t, const struct group *g, uint64_t bytes);

#endif
