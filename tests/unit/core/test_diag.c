#include "test.h"

#include <errno.h>
#include <string.h>

#include "diag.h"
#include "process/process.h"

static struct stored_attributes called(const char *comm) {
  const struct span value[ATTRIBUTES] = {
      [ATTRIBUTE_COMM] = {.text = comm, .len = strlen(comm)}};
  struct stored_attributes nothing = {0}, ret = {0};

  assert_int_equal(attributes_renew(&nothing, value, 0, &ret),
                   ATTRIBUTES_CHANGED);
  return ret;
}

TEST(the_first_case_is_the_example_and_all_are_counted) {
  struct process first = {.pid = 7, .attributes = called("a\n\"b\"")};
  struct process second = {.pid = 8, .attributes = called("c")};
  struct diag diags[DIAGS] = {{0}};
  const struct diag *d = &diags[DIAG_FAILED];

  diag_note(diags, DIAG_FAILED, &first, -EIO, "stat");
  diag_note(diags, DIAG_FAILED, &second, -ENOMEM, "statm");
  assert_int_equal(d->count, 2);
  assert_int_equal(d->pid, 7);
  assert_int_equal(d->error, EIO);
  assert_string_equal(d->file, "stat");
  assert_string_equal(d->comm, "a\\x0a\\x22b\\x22");
  for (int i = 0; i < DIAGS; i++)
    assert_int_equal(diags[i].count, i == DIAG_FAILED ? 2 : 0);
  attributes_done(&first.attributes);
  attributes_done(&second.attributes);
}
