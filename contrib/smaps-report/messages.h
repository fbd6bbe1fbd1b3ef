/* SPDX-License-Identifier: MIT */
/*
 * The lines that the plugin's sources log. Here this program stands for the
 * daemon: messages.c has its plugin_log() and its clock.
 */
#ifndef REPORT_MESSAGES_H
#define REPORT_MESSAGES_H

#include <stddef.h>
#include <stdio.h>

/* The number of errors since the last messages_print(). */
size_t messages_errors(void);

/* Prints and forgets the errors and warnings, a line each, and without the
 * plugin's name. Text of strangers is made safe for a terminal. */
void messages_print(FILE *out);

#endif
