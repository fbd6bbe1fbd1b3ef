/* Amounts, durations and times as people write them. */
#ifndef SMAPS_FORMAT_H
#define SMAPS_FORMAT_H

#include <stdint.h>

#define FORMAT_SIZE 32

/* "812.3 MiB". */
const char *format_amount(uint64_t bytes, char ret[FORMAT_SIZE]);

/* The two largest units: "45s", "21m41s", "3h5m", "2d7h". */
const char *format_duration(uint64_t ns, char ret[FORMAT_SIZE]);

/* A time since the Epoch as the clock here shows it: "13:18", with the date
 * unless that is the date of `now_ns`. */
const char *format_clock(uint64_t time_ns, uint64_t now_ns,
                         char ret[FORMAT_SIZE]);

#endif
