/* SPDX-License-Identifier: MIT */
/*
 * The state of the screen of --watch, apart from the terminal: which rows are
 * shown, in which order, which of them is selected.
 *
 * There are three levels: groups, the processes of a group, the mappings of a
 * process. Each has its own filter, selection and first row.
 */
#ifndef REPORT_WATCH_MODEL_H
#define REPORT_WATCH_MODEL_H

#include "document.h"

enum watch_level { LEVEL_GROUPS, LEVEL_PROCESSES, LEVEL_MAPPINGS, LEVELS };

/* In the order of the columns. */
enum watch_sort {
  SORT_PSS,
  SORT_USS,
  SORT_RSS,
  SORT_SWAP,
  SORT_START, /* the change since the start */
  SORT_LAST,  /* the change since the last refresh */
  SORT_COUNT,
  SORT_NAME,
  SORTS
};

struct watch_row {
  const char
      *name; /* a stranger's text; NULL: the mappings that are left out */
  char *key; /* identifies the row in each refresh */
  const struct group *group;       /* of a row of groups */
  const struct process *process;   /* of a row of processes */
  const struct mapping *mapping;   /* of a row of mappings */
  uint64_t amounts[SORT_SWAP + 1]; /* bytes or MISSING */
  uint64_t pss_error;
  /* The processes of a group, the pid of a process, the areas of a mapping. */
  uint64_t count;
  uint64_t first;     /* the first PSS that was known; or MISSING */
  double start, last; /* the changes of PSS in bytes; NaN: unknown */
};

/* All rows of a level, sorted by key. A row that is gone is forgotten, so that
 * a long watch does not grow. */
struct watch_rows {
  struct watch_row *all;
  size_t n;
};

struct watch_view {
  char *filter;   /* NULL: none */
  char *selected; /* a key; NULL: the first row */
  size_t at;      /* the index of the selected row */
  size_t top;     /* the index of the first row that is shown */
};

struct watch {
  bool has_document;
  struct document document; /* of the last refresh */
  bool has_close_up;
  struct document close_up; /* the process whose mappings are shown */
  char *trouble;            /* why there are no mappings; or NULL */
  enum watch_level level;
  enum watch_sort sort;
  bool is_reversed;
  bool is_frozen;
  char *group;             /* whose processes are shown */
  char *process_name;      /* of the process whose mappings are shown */
  uint64_t pid, starttime; /* its identity */
  struct watch_view views[LEVELS];
  struct watch_rows levels[LEVELS]; /* of mappings: of that process */
  struct watch_row *rows; /* of this level, that pass the filter; sorted */
  size_t n;
  size_t n_all; /* without the filter */
};

void watch_init(struct watch *w);
void watch_done(struct watch *w);

/* Takes the document of a refresh, and owns it. It is dropped while frozen. */
void watch_take(struct watch *w, struct document *d);

/* Takes the document of a process, or, with d NULL, why there is none. It is
 * dropped unless the mappings of that process are shown. */
void watch_take_close_up(struct watch *w, uint64_t pid, struct document *d,
                         const char *trouble);

/* Goes into the selected row. True if there is a level below. */
bool watch_enter(struct watch *w);

/* Goes back. True if there is a level above. */
bool watch_leave(struct watch *w);

/* The process whose mappings are shown; MISSING if none are. */
uint64_t watch_pid(const struct watch *w);

/* Selects a row so many further down, and at most the last or first. */
void watch_move(struct watch *w, long rows);

/* Scrolls so that the selected row is among so many. */
void watch_scroll(struct watch *w, size_t shown);

void watch_sort_by(struct watch *w, enum watch_sort sort);
void watch_reverse(struct watch *w);

/* Shows the rows whose name (of a process also comm and user) contains the
 * text, in any case. NULL or an empty text: all. */
void watch_filter(struct watch *w, const char *text);
const char *watch_filter_of(const struct watch *w); /* never NULL */

#endif
