/* SPDX-License-Identifier: MIT */
/* Draws numbers that look random and are the same in each run. */
#ifndef SMAPS_TESTS_DRAW_H
#define SMAPS_TESTS_DRAW_H

#include <stdint.h>

/* Begins a sequence; seed is not 0. To be called before the first number. */
void draw_begin(uint64_t seed);

/* Returns the next number, from 0 to below - 1. */
uint64_t draw(uint64_t below);
unsigned draw_unsigned(unsigned below);

#endif
