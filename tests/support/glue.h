/* SPDX-License-Identifier: MIT */
/*
 * The plugin as the daemon sees it: loaded into a stub of the daemon
 * (stub_daemon.h), over a proc tree with one process.
 *
 * The process is 10, "web": 120 kB of Pss, of which 100 kB are its own, and
 * three threads.
 */
#ifndef SMAPS_TESTS_GLUE_H
#define SMAPS_TESTS_GLUE_H

#include "proctree.h"
#include "stub_daemon.h"

extern struct proctree glue_tree;

/* Fixtures of a test: they load the plugin, and shut it down. */
int glue_setup(void **state);
int glue_teardown(void **state);

#define GLUE_TEST(name) TEST_WITH(name, glue_setup, glue_teardown, void *none)

/* Configures the plugin with the tree and these options, and starts it. */
void glue_start(const char *options);

/* Configures it with the tree, the group "web" of the process, and more. */
void glue_configure_web(const char *more);

/* Configures it like this, and starts it. */
void glue_start_web(const char *more);

/* Runs a cycle; the stub then has the values of this cycle only. */
void glue_read(void);

/* Returns a dispatched value by its identifier. Fails the test if it is
 * missing.
 */
double glue_value(const char *identifier);

#endif
