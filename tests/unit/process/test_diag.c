/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <errno.h>
#include <string.h>

#include "process/diag.h"
#include "process/process.h"

static struct stored_attributes called(const char *comm) {
  const struct span value[ATTRIBUTES] = {
      [ATTRIBUTE_COMM] = {.text = comm, .len = strlen(comm)}};
  struct stored_attributes nothing = {0}, ret = {0};

  assert_int_equal(attributes_renew(&nothing, value, 0, &ret),
                   ATTRIBUTES_CHANGED);
  return ret;
}

TEST(the_first_case_is_the_example) {
  static const char *const comms[] = {"a\n\"b\"", "c", "\"", "d"};
  struct diag diags[DIAGS] = {{0}};
  const struct diag *d = &diags[DIAG_FAILED];

  for (uint32_t i = 0; i < LENGTH(comms); i++) {
    struct process p = {.pid = 7 + i, .attributes = called(comms[i])};

    diag_note(diags, DIAG_FAILED, &p, i ? -ENOMEM : -EIO, i ? "statm" : "stat");
    attributes_done(&p.attributes);
  }
  for (int i = 0; i < DIAGS; i++)
    assert_int_equal(diags[i].count, i == DIAG_FAILED ? 4 : 0);
  assert_int_equal(d->pid, 7);
  assert_int_equal(d->error, EIO);
  assert_string_equal(d->file, "stat");
  assert_string_equal(d->comm, "a\\x0a\\x22b\\x22");
}
