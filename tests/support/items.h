/* SPDX-License-Identifier: MIT */
/* Makes configurations as the daemon's parser does. */
#ifndef SMAPS_TESTS_ITEMS_H
#define SMAPS_TESTS_ITEMS_H

#include <daemon/collectd.h>
#include <liboconfig/oconfig.h>

/* <Plugin smaps> with the items of a text, as a user writes them, but with ' in
 * place of ". To be freed by items_free(). */
oconfig_item_t items_parse(const char *text);
void items_free(oconfig_item_t *block);

/* Hands such a block to the plugin (stub_daemon.h), and frees it. The text is
 * printed as by printf(). */
int items_configure(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
