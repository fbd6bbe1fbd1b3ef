/* What may stand in <Capture>. */
#ifndef SMAPS_PLUGIN_CONFIG_CAPTURE_H
#define SMAPS_PLUGIN_CONFIG_CAPTURE_H

#include "option.h"

/* Ends with a NULL name. All of them need scope->settings and nothing else. */
extern const struct option capture_options[];

#endif
