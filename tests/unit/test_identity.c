#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <smaps/identity.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SPAN(literal) ((struct span){literal, sizeof(literal) - 1})

static const struct span nginx[ATTRIBUTES] = {
    [ATTRIBUTE_COMM] = {"nginx", 5},
    [ATTRIBUTE_COMMAND_LINE] = {"nginx: worker", 13},
    [ATTRIBUTE_UNIT] = {"nginx.service", 13},
};

/* Sets the values from texts without a NUL behind them, which are gone
 * afterwards. Returns whether the identity says it has changed. */
static bool set(struct stored_identity *id, const struct span value[ATTRIBUTES],
                uint32_t uid) {
  struct span copy[ATTRIBUTES];
  struct stored_identity next;
  int r;

  for (int i = 0; i < ATTRIBUTES; i++) {
    copy[i] = (struct span){.text = NULL};
    if (value[i].text) {
      char *text = malloc(value[i].len);

      assert_non_null(text);
      memcpy(text, value[i].text, value[i].len);
      copy[i] = (struct span){.text = text, .len = value[i].len};
    }
  }
  r = identity_renew(id, copy, uid, &next);
  assert_true(r == 0 || r == IDENTITY_CHANGED);
  for (int i = 0; i < ATTRIBUTES; i++)
    free((void *)(uintptr_t)copy[i].text);
  if (r == IDENTITY_CHANGED) {
    identity_done(id);
    *id = next;
  }
  return r == IDENTITY_CHANGED;
}

static void values_are_copied(void **state) {
  struct stored_identity id = {.uid = 0};

  (void)state;
  assert_true(set(&id, nginx, 33));
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_COMM], "nginx");
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_COMMAND_LINE],
                      "nginx: worker");
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_UNIT], "nginx.service");
  assert_int_equal(id.uid, 33);
  identity_done(&id);
}

static void what_is_not_known_is_null(void **state) {
  struct stored_identity id = {.uid = 0};

  (void)state;
  assert_true(set(&id, nginx, 33));
  for (int i = 0; i < ATTRIBUTES; i++)
    if (!nginx[i].text)
      assert_null(identity_get(&id).value[i]);
  identity_done(&id);
}

static void the_first_values_are_a_change_even_if_none_is_known(void **state) {
  static const struct span none[ATTRIBUTES] = {{0}};
  struct stored_identity id = {.uid = 0};

  (void)state;
  assert_true(set(&id, none, 0));
  assert_false(set(&id, none, 0));
  for (int i = 0; i < ATTRIBUTES; i++)
    assert_null(identity_get(&id).value[i]);
  identity_done(&id);
}

static void the_same_values_are_no_change(void **state) {
  struct stored_identity id = {.uid = 0};
  const char *block;

  (void)state;
  set(&id, nginx, 33);
  block = id.block;
  assert_false(set(&id, nginx, 33));
  assert_ptr_equal(id.block, block);
  identity_done(&id);
}

static void any_difference_is_a_change(void **state) {
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

  (void)state;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct span next[ATTRIBUTES];
    struct stored_identity id = {.uid = 0};

    memcpy(next, nginx, sizeof(next));
    next[cases[i].attribute] = cases[i].value;
    set(&id, nginx, 33);
    if (!set(&id, next, 33))
      fail_msg("%s: no change", cases[i].name);
    if (set(&id, next, 33))
      fail_msg("%s: changed twice", cases[i].name);
    identity_done(&id);
  }
}

static void another_uid_is_a_change(void **state) {
  struct stored_identity id = {.uid = 0};

  (void)state;
  set(&id, nginx, 33);
  assert_true(set(&id, nginx, 34));
  assert_int_equal(id.uid, 34);
  identity_done(&id);
}

static void an_empty_value_is_known(void **state) {
  struct span value[ATTRIBUTES] = {[ATTRIBUTE_COMM] = SPAN("")};
  struct stored_identity id = {.uid = 0};

  (void)state;
  set(&id, value, 0);
  assert_non_null(identity_get(&id).value[ATTRIBUTE_COMM]);
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_COMM], "");
  identity_done(&id);
}

static void any_byte_but_nul_is_kept(void **state) {
  struct span value[ATTRIBUTES] = {[ATTRIBUTE_COMM] = SPAN("\x01\n\"\\\xff/")};
  struct stored_identity id = {.uid = 0};

  (void)state;
  set(&id, value, 0);
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_COMM],
                      "\x01\n\"\\\xff/");
  identity_done(&id);
}

/* As the identifier does, for what it has no need to read again. */
static void values_may_be_those_of_the_identity_itself(void **state) {
  struct stored_identity id = {.uid = 0};
  struct span value[ATTRIBUTES] = {{0}};

  (void)state;
  set(&id, nginx, 33);
  value[ATTRIBUTE_COMM] = SPAN("renamed");
  for (int i = ATTRIBUTE_COMMAND_LINE; i < ATTRIBUTES; i++)
    if (identity_get(&id).value[i])
      value[i] = (struct span){identity_get(&id).value[i],
                               strlen(identity_get(&id).value[i])};
  assert_true(set(&id, value, 33));
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_COMM], "renamed");
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_COMMAND_LINE],
                      "nginx: worker");
  assert_string_equal(identity_get(&id).value[ATTRIBUTE_UNIT], "nginx.service");
  identity_done(&id);
}

static void an_identity_that_is_done_knows_nothing(void **state) {
  struct stored_identity id = {.uid = 0};

  (void)state;
  identity_done(&id);
  set(&id, nginx, 33);
  identity_done(&id);
  assert_int_equal(id.uid, 0);
  assert_null(id.block);
  for (int i = 0; i < ATTRIBUTES; i++)
    assert_null(identity_get(&id).value[i]);
  assert_true(set(&id, nginx, 33));
  identity_done(&id);
}

/* Whoever is done first: under ASan neither loses them nor frees them twice. */
static void shared_values_stay_until_both_are_done(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    struct stored_identity id[2] = {{.uid = 0}};

    set(&id[0], nginx, 33);
    id[1] = identity_share(&id[0]);
    identity_done(&id[i]);
    assert_null(id[i].block);
    assert_string_equal(identity_get(&id[!i]).value[ATTRIBUTE_UNIT],
                        "nginx.service");
    assert_int_equal(id[!i].uid, 33);
    identity_done(&id[!i]);
  }
}

static void nothing_can_be_shared_too(void **state) {
  struct stored_identity id = {.uid = 7}, other = identity_share(&id);

  (void)state;
  assert_null(other.block);
  assert_int_equal(other.uid, 7);
  identity_done(&other);
  identity_done(&id);
}

/* Places in the block are of 16 bits. */
static void values_that_are_too_long_together_are_refused(void **state) {
  enum { HEAD = 4, MOST = UINT16_MAX - HEAD - 2 };
  char *text = calloc(1, MOST + 1);
  struct stored_identity id = {.uid = 0}, next;
  struct span value[ATTRIBUTES] = {{0}};

  (void)state;
  assert_non_null(text);
  memset(text, 'x', MOST + 1);
  value[ATTRIBUTE_COMM] = (struct span){text, 0};
  value[ATTRIBUTE_CGROUP] = (struct span){text, MOST};
  assert_true(set(&id, value, 1));
  assert_int_equal(strlen(identity_get(&id).value[ATTRIBUTE_CGROUP]), MOST);
  value[ATTRIBUTE_CGROUP].len++;
  memset(&next, 0x5a, sizeof(next));
  assert_int_equal(identity_renew(&id, value, 1, &next), -E2BIG);
  for (size_t i = 0; i < sizeof(next); i++)
    assert_int_equal(((const unsigned char *)&next)[i], 0x5a);
  free(text);
  identity_done(&id);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_copied),
      cmocka_unit_test(what_is_not_known_is_null),
      cmocka_unit_test(the_first_values_are_a_change_even_if_none_is_known),
      cmocka_unit_test(the_same_values_are_no_change),
      cmocka_unit_test(any_difference_is_a_change),
      cmocka_unit_test(another_uid_is_a_change),
      cmocka_unit_test(an_empty_value_is_known),
      cmocka_unit_test(any_byte_but_nul_is_kept),
      cmocka_unit_test(values_may_be_those_of_the_identity_itself),
      cmocka_unit_test(an_identity_that_is_done_knows_nothing),
      cmocka_unit_test(shared_values_stay_until_both_are_done),
      cmocka_unit_test(nothing_can_be_shared_too),
      cmocka_unit_test(values_that_are_too_long_together_are_refused),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
