/* SPDX-License-Identifier: MIT */
/*
 * Amounts, durations and times as people write them.
 *
 * An amount has three digits, as in htop: 9.87, 98.7, 987, and then 0.96 of the
 * next unit, so that it is never off by more than half a percent and all
 * amounts of a column have about the same width. Units are powers of 1024.
 */
#ifndef SMAPS_FORMAT_H
#define SMAPS_FORMAT_H

#include <stdint.h>

#define FORMAT_SIZE 32

/* All return ret. */

/* In a sentence: "999 B", "0.98 KiB", "812 MiB". */
const char *format_amount(uint64_t bytes, char ret[FORMAT_SIZE]);

/* In a table: "999", "0.98K", "812M". */
const char *format_bytes(uint64_t bytes, char ret[FORMAT_SIZE]);

/*
 * The two largest units: "120us", "3.4ms", "5.6s", "45s", "21m41s", "3h02m",
 * "2d07h"; 99999 days at most. The second takes seconds, which are not NaN; if
 * they are negative, they count as 0.
 */
const char *format_duration(uint64_t ns, char ret[FORMAT_SIZE]);
const char *format_seconds(double seconds, char ret[FORMAT_SIZE]);

/* A time since the Epoch as the clock here shows it beside another one, which
 * is mostly now: "13:18"; on another day "11-20 13:18", in another year
 * "2025-12-31 13:18". */
const char *format_clock(uint64_t time_ns, uint64_t now_ns,
                         char ret[FORMAT_SIZE]);

#endif
