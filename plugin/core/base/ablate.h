/* SPDX-License-Identifier: MIT */
/*
 * Rules of the estimate that `make ablate` switches off in turn, to measure the
 * use of each (contrib/HACKING, tests/support/ablate.h). In any other build
 * they are all on.
 */
#ifndef SMAPS_ABLATE_H
#define SMAPS_ABLATE_H

#ifndef RULE
#define RULE(name) true
#endif

#endif
