/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "process/attributes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPAN(literal) ((struct span){literal, sizeof(literal) - 1})

static const struct span nginx[ATTRIBUTES] = {
    [ATTRIBUTE_COMM] = {"nginx", 5},
    [ATTRIBUTE_COMMAND_LINE] = {"nginx: worker", 13},
    [ATTRIBUTE_UNIT] = {"nginx.service", 13},
    [ATTRIBUTE_SLICE] = {"", 0},
};

/* Sets the values from texts that end without a NUL, and that are gone
 * afterwards. Returns whether the identity says it has changed. */
static bool set(struct stored_attributes *id,
                const struct span value[ATTRIBUTES], uint32_t uid) {
  struct span copy[ATTRIBUTES];
  struct stored_attributes next;
  int r;

  for (int i = 0; i < ATTRIBUTES; i++) {
    copy[i] = (struct span){.text = NULL};
    if (value[i].text) {
      char *text = malloc(value[i].len);

      memcpy(text, value[i].text, value[i].len);
      copy[i] = (struct span){.text = text, .len = value[i].len};
    }
  }
  r = attributes_renew(id, copy, uid, &next);
  assert_true(r == 0 || r == ATTRIBUTES_CHANGED);
  for (int i = 0; i < ATTRIBUTES; i++)
    free((void *)(uintptr_t)copy[i].text);
  if (r == ATTRIBUTES_CHANGED) {
    attributes_done(id);
    *id = next;
  }
  return r == ATTRIBUTES_CHANGED;
}

static void begin(struct stored_attributes *id) {
  *id = (struct stored_attributes){.uid = 0};
}

TEST_OBJECT(struct stored_attributes, begin, attributes_done)
#define STORED_TEST(name)                                                      \
  TEST_WITH(name, make, unmake, struct stored_attributes *id)

STORED_TEST(the_first_values_are_a_change_even_if_none_is_known) {
  static const struct span none[ATTRIBUTES] = {{0}};

  assert_true(set(id, none, 0));
  assert_false(set(id, none, 0));
  for (int i = 0; i < ATTRIBUTES; i++)
    assert_null(attributes_get(id).value[i]);
}

TEST(any_difference_is_a_change) {
  static const struct {
    const char *name;
    enum attribute attribute;
    struct span value;
  } cases[] = {
      {"another byte", ATTRIBUTE_COMM, {"nginX", 5}},
      {"longer", ATTRIBUTE_COMM, {"nginx2", 6}},
      {"shorter", ATTRIBUTE_COMM, {"ngin", 4}},
      {"empty", ATTRIBUTE_COMM, {"", 0}},
      {"forgotten", ATTRIBUTE_COMM, {NULL, 0}},
      {"learnt", ATTRIBUTE_USER, {"www-data", 8}},
      {"learnt to be empty", ATTRIBUTE_USER, {"", 0}},
      {"the last attribute", ATTRIBUTE_CONTAINER, {"c1", 2}},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    struct span next[ATTRIBUTES];
    struct stored_attributes id = {.uid = 0};
    const char *block;

    memcpy(next, nginx, sizeof(next));
    next[cases[i].attribute] = cases[i].value;
    set(&id, nginx, 33);
    block = id.block;
    assert_false(set(&id, nginx, 33));
    assert_ptr_equal(id.block, block);
    if (!set(&id, next, 33))
      fail_msg("%s: no change", cases[i].name);
    if (set(&id, next, 33))
      fail_msg("%s: changed twice", cases[i].name);
    attributes_done(&id);
  }
}

/* The first of the two may be done first, or the second: ASan sees neither a
 * leak nor a double free. */
TEST(shared_values_stay_until_both_are_done) {
  for (int i = 0; i < 2; i++) {
    struct stored_attributes id[2] = {{.uid = 0}};

    set(&id[0], nginx, 33);
    id[1] = attributes_share(&id[0]);
    attributes_done(&id[i]);
    assert_null(id[i].block);
    assert_string_equal(attributes_get(&id[!i]).value[ATTRIBUTE_UNIT],
                        "nginx.service");
    assert_int_equal(id[!i].uid, 33);
    attributes_done(&id[!i]);
  }
}

/* Places in the block are of 16 bits. */
TEST(values_that_are_too_long_together_are_refused) {
  enum { HEAD = 4, MOST = UINT16_MAX - HEAD - 2 };
  char *text = calloc(1, MOST + 1);
  struct stored_attributes id = {.uid = 0}, next;
  struct span value[ATTRIBUTES] = {{0}};

  memset(text, 'x', MOST + 1);
  value[ATTRIBUTE_COMM] = (struct span){text, 0};
  value[ATTRIBUTE_CGROUP] = (struct span){text, MOST};
  assert_true(set(&id, value, 1));
  assert_int_equal(strlen(attributes_get(&id).value[ATTRIBUTE_CGROUP]), MOST);
  value[ATTRIBUTE_CGROUP].len++;
  memset(&next, 0x5a, sizeof(next));
  assert_int_equal(attributes_renew(&id, value, 1, &next), -E2BIG);
  for (size_t i = 0; i < sizeof(next); i++)
    assert_int_equal(((const unsigned char *)&next)[i], 0x5a);
  free(text);
  attributes_done(&id);
}
