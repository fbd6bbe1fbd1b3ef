#include "test.h"

#include <stdlib.h>

#include "estimate/thrift.h"

#define MINUTE 60
#define CYCLES 10000

struct life {
  struct thrift thrift;
  unsigned short random[3];
  double price_ns;       /* of a reading */
  double changed;        /* the part of the cycles in which it must be read */
  double beyond[CYCLES]; /* the price of "always", in nanoseconds */
};

static struct life life;

/* A process that is not followed is read as "always" does. */
static double live(struct life *l) {
  bool is_followed = thrift_may_follow(&l->thrift, 1);
  bool is_read = !is_followed || erand48(l->random) < l->changed;
  unsigned files = is_followed ? is_read ? 4 : 1 : 0;

  thrift_spend(&l->thrift, files);
  thrift_save(&l->thrift, 1, (uint64_t)l->price_ns, is_read);
  return files * (double)THRIFT_FILE_NS - (is_read ? 0 : l->price_ns);
}

static double follow(double price_ns, double changed) {
  double all = 0;

  life = (struct life){
      .price_ns = price_ns, .changed = changed, .random = {1, 2, 3}};
  for (int i = 0; i < CYCLES; i++) {
    life.beyond[i] = live(&life);
    all += life.beyond[i];
  }
  return all / CYCLES;
}

static double dearest_minute(void) {
  double most = 0;

  for (int first = 0; first + MINUTE <= CYCLES; first++) {
    double sum = 0;

    for (int i = first; i < first + MINUTE; i++)
      sum += life.beyond[i];
    if (sum > most)
      most = sum;
  }
  return most;
}

TEST(no_minute_is_dearer_than_always_by_more_than_the_credit) {
  static const double prices[] = {5000, 10000, 20000, 50000, 1e6, 1e8};
  static const double changed[] = {0, 0.1, 0.5, 0.9, 1};

  for (size_t i = 0; i < LENGTH(prices); i++)
    for (size_t j = 0; j < LENGTH(changed); j++) {
      follow(prices[i], changed[j]);
      /* The credit, and the last cycle, and a part of what "always" costs. */
      assert_true(dearest_minute() <= (double)THRIFT_CREDIT_NS +
                                          4 * (double)THRIFT_FILE_NS +
                                          0.06 * MINUTE * prices[i]);
    }
}

TEST(a_large_process_that_rarely_changes_is_followed_always) {
  assert_true(follow(1e6, 0.1) < -0.8 * 1e6);
}

/* As its price or its habits may have changed. */
TEST(following_is_tried_again) {
  follow(5000, 1);
  life.changed = 0;
  life.price_ns = 50000;
  for (int i = 0; i < 2 * MINUTE; i++)
    live(&life);
  assert_true(thrift_may_follow(&life.thrift, 1));
  assert_true(life.thrift.owed_ns <= 0);
}

/* Of a thousand workers that owed all they could, ten are left. */
TEST(debt_of_members_that_are_gone_is_forgiven) {
  enum { WERE = 1000, MEMBERS = 10, MOST = 600 };
  struct thrift thrift = {.owed_ns = THRIFT_CREDIT_NS * WERE};
  unsigned n = 0;

  while (!thrift_may_follow(&thrift, MEMBERS) && n++ < MOST)
    for (int i = 0; i < MEMBERS; i++)
      thrift_save(&thrift, MEMBERS, 30000, true);
  assert_in_range(n, MOST / 6, MOST - 1);
}
