/*
 * Snapshots: one JSON document of who uses how much memory, for the state file
 * and for captures. contrib/man/smaps-snapshot.5 describes it.
 */
#ifndef SMAPS_SNAPSHOT_H
#define SMAPS_SNAPSHOT_H

#include <smaps/json.h>
#include <smaps/measure.h>
#include <smaps/settings.h>

/* A notification that asks for a capture. */
struct alarm {
  enum severity severity;
  uint64_t time_ns; /* since the Epoch */
  char group[NAME_SIZE];
  char type[NAME_SIZE], type_instance[NAME_SIZE]; /* may be empty */
  char message[256];
};

/* What there is to write down: the last cycle. */
struct scene {
  const struct settings *settings;
  const struct process_table *processes;
  const struct group_table *groups;
  const struct measurer *measurer;
  struct meminfo_sample meminfo;
  uint64_t time_ns; /* of the cycle, since the Epoch */
};

/* What a capture knows more of a process than its scene does. */
struct close_up {
  struct mapping_table *table; /* is ranked */
  const struct rollup *sum;    /* of it; NULL where it is of a maps */
  size_t top_mappings;
};

/*
 * To be called in this order: begin, process for each, end. What is between
 * may be of later cycles than the beginning, with their scenes. Errors stick to
 * the json.
 */

/* All up to the processes; alarm is NULL for a state. */
void snapshot_begin(struct json *j, const struct scene *s,
                    const struct alarm *alarm);

/* close_up may be NULL. */
void snapshot_process(struct json *j, const struct scene *s,
                      const struct process *p, bool has_command_line,
                      const struct close_up *close_up);

/* Of a capture: how many members are not in it, and all that is mapped. all is
 * NULL for a state. */
void snapshot_end(struct json *j, uint64_t left_out, struct mapping_table *all,
                  size_t top_mappings);

#endif
