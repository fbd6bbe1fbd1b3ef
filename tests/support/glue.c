/* SPDX-License-Identifier: MIT */
#include "glue.h"

#include "test.h"

#include <unistd.h>

#include "items.h"

struct proctree glue_tree;

int glue_setup(void **state) {
  const struct fake_mapping mapping = {.name = "[heap]", .private_kb = 100};

  (void)state;
  alarm(300); /* A test that waits in vain fails. */
  stub_begin(module_register);
  proctree_make(&glue_tree);
  proctree_put(&glue_tree, &(struct fake){.pid = 10,
                                          .comm = "web",
                                          .starttime = 5,
                                          .cmdline = "web --secret",
                                          .private_kb = 100,
                                          .shared_kb = 40,
                                          .threads = 3});
  proctree_put_smaps(&glue_tree, 10, &mapping, 1);
  return 0;
}

int glue_teardown(void **state) {
  (void)state;
  stub.shutdown();
  proctree_remove(&glue_tree);
  return 0;
}

void glue_start(const char *options) {
  assert_int_equal(
      items_configure("ProcRoot '%s'\n%s", glue_tree.root, options), 0);
  assert_int_equal(stub.init(), 0);
}

void glue_configure_web(const char *more) {
  assert_int_equal(
      items_configure("ProcRoot '%s'\n<Group 'web'>\nComm 'web'\n</Group>\n%s",
                      glue_tree.root, more),
      0);
}

void glue_start_web(const char *more) {
  glue_configure_web(more);
  assert_int_equal(stub.init(), 0);
}

void glue_read(void) {
  stub.n_values = 0;
  assert_int_equal(stub.read(NULL), 0);
}

double glue_value(const char *identifier) {
  const struct stub_value *v = stub_find(identifier);

  if (!v)
    fail_msg("%s was not dispatched", identifier);
  return v ? v->values[0] : 0;
}
