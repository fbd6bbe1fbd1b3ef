/* Calls that a test replaces by the linker's --wrap (tests/tests.mk). */
#ifndef SMAPS_TESTS_WRAP_H
#define SMAPS_TESTS_WRAP_H

/* Declares the replacement, __wrap_CALL(), and what it replaces,
 * __real_CALL(). */
#define WRAPPED(type, call, ...)                                               \
  type __real_##call(__VA_ARGS__);                                             \
  type __wrap_##call(__VA_ARGS__)

#endif
