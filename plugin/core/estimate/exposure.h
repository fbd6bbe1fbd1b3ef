/*
 * What the error of an estimate can come from, in bytes by cause: a bound where
 * there is one. audit.h knows what part of it is to be expected.
 */
#ifndef SMAPS_EXPOSURE_H
#define SMAPS_EXPOSURE_H

#include "estimate/audit.h"
#include "estimate/estimate.h"

void exposure_of(const struct baseline *b, const struct change *c,
                 struct exposure *ret);

#endif
