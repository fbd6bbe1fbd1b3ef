/* SPDX-License-Identifier: MIT */
#include "draw.h"

/* Holds the state of xorshift64. */
static uint64_t state;

void draw_begin(uint64_t seed) { state = seed; }

uint64_t draw(uint64_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state % below;
}

unsigned draw_unsigned(unsigned below) { return (unsigned)draw(below); }
