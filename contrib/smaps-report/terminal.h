/*
 * The terminal while ncurses has it. However the program ends, it is as it was
 * before: by terminal_end(), exit(), or a signal that tells of a defect.
 */
#ifndef REPORT_TERMINAL_H
#define REPORT_TERMINAL_H

#include <smaps/config_error.h>

/* Returns 0, or -EINVAL with the reason if standard input and output are no
 * terminal, or one that cannot move its cursor. */
int terminal_begin(struct config_error *reason);
void terminal_end(void);

/* A signal that ends the program (SIGINT, SIGTERM, SIGHUP, SIGQUIT) and has
 * come, or 0. */
int terminal_signal(void);

/* Ends the program as the signal would have. */
void terminal_raise(int number) __attribute__((noreturn));

#endif
