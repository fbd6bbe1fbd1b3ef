/*
 * The terminal while ncurses has it. However the program ends, it is as it was
 * before: by terminal_end(), exit() or a signal.
 */
#ifndef REPORT_TERMINAL_H
#define REPORT_TERMINAL_H

#include <smaps/config_error.h>

/* Returns 0, or -EINVAL with the reason if standard input and output are not a
 * terminal, or if the terminal cannot move its cursor. */
int terminal_begin(struct config_error *reason);
void terminal_end(void);

#endif
