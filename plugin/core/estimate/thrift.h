/*
 * Keeps "adaptive" from costing more than "always" would. To follow a process
 * between its readings takes further files than statm, which pays only where it
 * saves readings; a small process is read as cheaply as it is followed. So
 * there is an account, of a fork family or of a process by itself. Readings
 * that are saved are paid in, those files are paid out. With an empty account a
 * process is estimated from statm alone, and read where that does not do, which
 * is no more than "always" does. A small part of what "always" costs comes in
 * each cycle, so that following is tried again.
 */
#ifndef SMAPS_THRIFT_H
#define SMAPS_THRIFT_H

#include <stdbool.h>
#include <stdint.h>

/* The most that an account may owe, for each member of the family. */
#define THRIFT_CREDIT_NS 50000.0F

/* To open, read and close a file of a process, such as stat: no more than the
 * least price of a reading, so that what is idle is followed and not read. */
#define THRIFT_FILE_NS 5000.0F

/* Zero owes nothing. */
struct thrift {
  float owed_ns;
};

static inline bool thrift_may_follow(const struct thrift *t, uint32_t members) {
  return t->owed_ns < THRIFT_CREDIT_NS * (float)members;
}

static inline void thrift_spend(struct thrift *t, unsigned files) {
  t->owed_ns += (float)files * THRIFT_FILE_NS;
}

/* A cycle has passed in which a process of that price was read, or not. Called
 * for each of the members. The debt that members have left who are gone is
 * forgiven by a hundredth in each cycle. */
void thrift_save(struct thrift *t, uint32_t members, uint64_t price_ns,
                 bool is_read);

#endif
