/* Keeps a number within bounds. */
#ifndef SMAPS_CLAMP_H
#define SMAPS_CLAMP_H

/* NaN becomes the least. */
static inline double clamp(double x, double least, double most) {
  return x > least ? (x < most ? x : most) : least;
}

#endif
