/* The options of <Capture>. */
#ifndef SMAPS_PLUGIN_CONFIG_CAPTURE_H
#define SMAPS_PLUGIN_CONFIG_CAPTURE_H

#include "option.h"

/* A NULL name ends the table. The options need scope->settings only. */
extern const struct option capture_options[];

#endif
