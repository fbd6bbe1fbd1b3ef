/* SPDX-License-Identifier: MIT */
#ifndef SMAPS_CHOICE_H
#define SMAPS_CHOICE_H

/* A yes or no that is inherited if it is not set. */
enum choice { CHOICE_UNSET, CHOICE_NO, CHOICE_YES };

#endif
