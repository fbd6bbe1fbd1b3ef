/* SPDX-License-Identifier: MIT */
/* The preamble of unit tests: cmocka with the headers that it needs, the units
 * that tests count in, and TEST(). */
#ifndef SMAPS_TESTS_TEST_H
#define SMAPS_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* cmocka 2 has two names for assert_in_range(), and the first version none of
 * them. */
#define CMOCKA_DISABLE_DEPRECATION_WARNINGS
#include <cmocka.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define PAGE UINT64_C(4096)
#define MS UINT64_C(1000000)
#define NS UINT64_C(1000000000) /* in a second */

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Expands to a literal and its length, with the NULs in it. */
#define TEXT(literal) literal, sizeof(literal) - 1

/*
 * Defines a test, which main() in test.c runs in the order of the file:
 *
 *   TEST(empty_file_is_rejected) { ... }
 *
 * TEST_WITH() makes a fixture before the test and removes it afterwards. The
 * parameter of the test is what `setup` stores in *state. A file that needs it
 * gives it a name of its own:
 *
 *   #define TREE_TEST(n) TEST_WITH(n, make, unmake, struct proctree *tree)
 */
#define TEST(name)                                                             \
  static void name(void);                                                      \
  static void name##_run(void **state) {                                       \
    (void)state;                                                               \
    name();                                                                    \
  }                                                                            \
  TEST_ADD(name, NULL, NULL)                                                   \
  static void name(void)

#define TEST_WITH(name, setup, teardown, parameter)                            \
  static void name(parameter);                                                 \
  static void name##_run(void **state) { name(*state); }                       \
  TEST_ADD(name, setup, teardown)                                              \
  static void name(__attribute__((unused)) parameter)

/* Defines make() and unmake() for TEST_WITH(): the fixture is an object that
 * begin() makes, given where it is, and that done() ends. */
#define TEST_OBJECT(type, begin, done)                                         \
  static int make(void **state) {                                              \
    static type object;                                                        \
    begin(&object);                                                            \
    *state = &object;                                                          \
    return 0;                                                                  \
  }                                                                            \
  static int unmake(void **state) {                                            \
    done(*state);                                                              \
    return 0;                                                                  \
  }

/* Runs the setup before all tests of the file and the teardown after them;
 * either may be NULL. */
#define TEST_GROUP(setup, teardown)                                            \
  __attribute__((constructor)) static void add_group(void) {                   \
    test_group(setup, teardown);                                               \
  }

#define TEST_ADD(name, setup, teardown)                                        \
  __attribute__((constructor)) static void name##_add(void) {                  \
    test_add(&(struct CMUnitTest){#name, name##_run, setup, teardown, NULL},   \
             __LINE__);                                                        \
  }

/*
 * The size of a page, of the core and of the trees that tests make, is not the
 * machine's: 4096 unless the test says another, before it makes its tree. Nor
 * is its speed: MACHINE_SLOWNESS=5 in the environment has a reading count as
 * hung five times later than the test says, for a machine that is emulated.
 */
void test_set_page_size(long bytes);

/* "ENOENT": strerrorname_np(3), which only glibc has, of the errors that tests
 * cause. */
const char *error_name(int error);

/* The bytes that malloc() has handed out; 0 where the C library does not count
 * them (musl), or where another allocator is in its place. */
size_t heap_used(void);

/* Declares what replaces a call by the linker's --wrap (tests/tests.mk),
 * __wrap_CALL(), and what it replaces, __real_CALL(). */
#define WRAPPED(type, call, ...)                                               \
  type __real_##call(__VA_ARGS__);                                             \
  type __wrap_##call(__VA_ARGS__)

void test_add(const struct CMUnitTest *test, unsigned line);
void test_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
