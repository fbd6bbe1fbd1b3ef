/* SPDX-License-Identifier: MIT */
/* The reason why an option is refused: the text of one error line. */
#ifndef SMAPS_CONFIG_ERROR_H
#define SMAPS_CONFIG_ERROR_H

#include <errno.h>
#include <stdio.h>

struct config_error {
  char text[320];
};

/* Formats the reason and cuts it to its size. */
#define config_error_format(r, ...)                                            \
  ((void)snprintf((r)->text, sizeof((r)->text), __VA_ARGS__))

/* The same; the value is -EINVAL, for a return statement. */
#define config_error_set(r, ...)                                               \
  (config_error_format((r), __VA_ARGS__), -EINVAL)

#endif
