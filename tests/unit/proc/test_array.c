#include "test.h"

#include "proc/array.h"

#include <stdlib.h>

struct numbers {
  unsigned *at;
  size_t n, cap;
};

static int compare(const void *key, const void *element) {
  unsigned a = *(const unsigned *)key, b = *(const unsigned *)element;

  return (a > b) - (a < b);
}

static size_t find(const struct numbers *a, unsigned number, bool *ret_found) {
  return array_find(a->at, a->n, sizeof(*a->at), &number, compare, ret_found);
}

TEST(elements_stay_sorted_and_are_found) {
  struct numbers a = {.n = 0};
  bool is_found;

  assert_int_equal(find(&a, 1, &is_found), 0);
  assert_false(is_found);
  for (unsigned i = 0; i < 100; i++) {
    unsigned number = 2 * (i * 37 % 100);
    size_t place = find(&a, number, &is_found);

    assert_false(is_found);
    a.at = array_insert(a.at, &a.n, &a.cap, sizeof(*a.at), place);
    a.at[place] = number;
  }
  for (unsigned i = 0; i <= 200; i++) {
    assert_int_equal(find(&a, i, &is_found), (i + 1) / 2);
    assert_int_equal(is_found, i % 2 == 0 && i < 200);
  }
  for (unsigned i = 0; i < 200; i += 4)
    array_remove(a.at, &a.n, sizeof(*a.at), find(&a, i, &is_found));
  assert_int_equal(a.n, 50);
  for (size_t i = 0; i < a.n; i++)
    assert_int_equal(a.at[i], 4 * i + 2);
  free(a.at);
}
