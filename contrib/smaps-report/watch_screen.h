/* SPDX-License-Identifier: MIT */
/* Draws the state of --watch with ncurses. */
#ifndef REPORT_WATCH_SCREEN_H
#define REPORT_WATCH_SCREEN_H

#include "text.h"
#include "watch_model.h"

#include <smaps/config_error.h>

struct watch_screen {
  struct style style; /* the unit and the locale */
  double seconds;     /* between refreshes */
  bool is_busy;       /* processes are being read */
  bool has_help;
  const char *typed;   /* the filter that is being typed; or NULL */
  const char *trouble; /* why there was no refresh; or NULL */
};

/*
 * Returns 0, or -EINVAL with the reason if standard input and output are not a
 * terminal, or if it cannot move its cursor. However the program ends then, the
 * terminal is as it was before: by watch_screen_end(), exit() or a signal.
 */
int watch_screen_begin(struct config_error *reason);
void watch_screen_end(void);

/* The number of rows that fit. */
size_t watch_screen_rows(void);

void watch_screen_draw(const struct watch_screen *s, struct watch *w);

#endif
