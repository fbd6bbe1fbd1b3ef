/* SPDX-License-Identifier: MIT */
/* Snapshots and captures as the caller of the collector sees them: the alarm
 * that asks for one, and the document that is written. */
#ifndef SMAPS_DOCUMENT_H
#define SMAPS_DOCUMENT_H

#include <smaps/settings.h>

/* The summary of a capture, for its notification. */
#define SUMMARY_PROCESSES 3

struct summary_process {
  uint32_t pid;
  bool has_pss;   /* if not, bytes are the resident size */
  uint64_t bytes; /* PSS */
  char comm[64];  /* escaped */
};

#define SUMMARY_MAPPING_NAME 32

struct summary_mapping {
  uint64_t bytes; /* PSS */
  /* The last so many bytes of it, escaped. */
  char name[4 * SUMMARY_MAPPING_NAME + 8];
};

/*
 * The difference of usage_filling(), whatever lies between: steps and peaks
 * count. Growth (report/growth.h) is only a rise that goes on.
 */
struct pss_change {
  int64_t bytes;
  uint64_t age_ns; /* of the earlier state; 0: unknown */
};

struct summary {
  bool has_ended;    /* the group has ended; the rest is its last known state */
  uint64_t ended_ns; /* if has_ended: how long ago */
  bool has_pss;
  uint64_t pss_bytes; /* of the group */
  uint64_t pss_error; /* error of pss_bytes; 0: none */
  struct pss_change change;
  /* Of the control group that it is; 0: none. */
  uint64_t limit_bytes;
  struct summary_process largest[SUMMARY_PROCESSES]; /* the largest first */
  size_t n;
  /* The same of the mappings of these and the other processes of a capture. */
  struct summary_mapping mappings[SUMMARY_PROCESSES];
  size_t n_mappings;
};

/* A notification that asks for a capture, or is to be sent. */
struct alarm {
  enum severity severity;
  uint64_t time_ns; /* since the Epoch */
  char group[GROUP_NAME_SIZE];
  char type[GROUP_NAME_SIZE], type_instance[GROUP_NAME_SIZE]; /* may be empty */
  char message[256];
  /* Of the plugin's own, report/alarm.h: type_instance is the worst cause. */
  bool is_own;
  uint64_t id;       /* of those, from 1 on */
  bool has_capture;  /* its document was given to the writer in this cycle */
  bool is_silent;    /* it is not sent: there is only a capture */
  uint64_t since_ns; /* since the Epoch */
  struct summary summary; /* without PSS: unknown, or it has no members */
};

enum document_kind {
  DOCUMENT_STATE,   /* replaces the state file, is added to the history */
  DOCUMENT_CAPTURE, /* is added to the captures */
  DOCUMENT_HISTORY, /* only in results: a state that the history lacks */
  DOCUMENT_PLACE,   /* no text: the captures' directory is made or checked */
  DOCUMENT_RESUME,  /* no text: what the state file remembers is read */
  DOCUMENT_KINDS
};

struct document {
  enum document_kind kind;
  char *text; /* allocated */
  size_t len;
  size_t resume_at;  /* of a state: where resume.h's part begins; 0: nowhere */
  uint64_t time_ns;  /* since the Epoch */
  uint64_t cycle_ns; /* of a state: the same by the clock of the cycles */
  bool is_early;     /* of a state: not for the history */
  char subject[GROUP_NAME_SIZE]; /* the group of a capture */
  struct summary summary;        /* of a capture */
  struct alarm alarm;            /* that it was made for */
  /* In results: the file, or the directory of a failed capture; and 0 or a
   * negative errno. */
  const char *path;
  int error;
};

#endif
