#include <smaps/sharing.h>

/* How far one reading speaks for the members that were not read: a quarter. */
#define OTHERS_OPINION 3.0
#define LEARNING_RATE 0.25
/* After less has moved there is less to learn. */
#define MOVED_WELL 0.05
#define NEWNESS_MOST 20.0
/* Of what earlier readings said about shmem and files. */
#define LEAD_KEPT 0.95
/* One member's surprise is not more than this to the others. */
#define FACTOR_MOST 2.0
/* Between two readings a page does not become dearer or cheaper by more: a
 * million members would have to come or go. */
#define COST_MOST 1e6

static double clamp(double x, double least, double most) {
  return x > least ? (x < most ? x : most) : least;
}

static double distance(double a, double b) { return a > b ? a - b : b - a; }

void sharing_init(struct sharing *s, const struct sharing *from,
                  uint64_t pages) {
  *s =
      (struct sharing){.now = (double)pages,
                       .before = (double)pages,
                       .left = (double)pages,
                       .grown = (double)pages,
                       .is_shmem = from && from->is_shmem,
                       .shmem_lead = from ? from->shmem_lead : 0,
                       .newness = from ? from->newness : 0,
                       .experience = from ? from->experience : EXPERIENCE_NONE};
}

void sharing_count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before) {
  if (s->cycle_ns != cycle_ns) {
    s->cycle_ns = cycle_ns;
    s->before = s->now;
    s->left = s->grown = s->now = s->shifted = 0;
    s->surprise = s->lessons = 0;
  }
  s->now += (double)pages;
  if (before == 0)
    return;
  s->left += (double)before;
  s->grown += (double)pages;
  s->shifted += distance((double)pages, (double)before);
}

void sharing_correct(struct sharing *s, double pages) { s->now += pages; }

static double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 1; }

/*
 * Who comes and goes takes up or leaves behind pages that the others have too.
 * Who is there and touches more may find some that nobody had.
 */
static double cost_factor(const struct sharing *s) {
  double grown = s->grown - s->left;

  return ratio(s->before, s->left) * ratio(s->grown, s->now) *
         ratio(s->left + (grown > 0 ? grown * s->newness : 0), s->grown);
}

static double moved_share(const struct sharing *s) {
  double most = s->before > s->now ? s->before : s->now;

  if (!(s->before > 0))
    return 0;
  return (distance(s->before, s->left) + s->shifted +
          distance(s->grown, s->now)) /
         most;
}

static void scale_cost(struct sharing_since *since, double factor) {
  since->cost = clamp(since->cost * factor, 1 / COST_MOST, COST_MOST);
}

void sharing_advance(const struct sharing *s, struct sharing_since *since) {
  scale_cost(since, cost_factor(s));
  since->moved = clamp(since->moved + moved_share(s), 0, 1);
}

void sharing_see_kind(struct sharing *s, uint64_t file_bytes,
                      uint64_t shmem_bytes) {
  s->shmem_lead =
      s->shmem_lead * LEAD_KEPT + (double)shmem_bytes - (double)file_bytes;
  s->is_shmem = s->shmem_lead > 0;
}

void sharing_learn(struct sharing *s, const struct sharing_lesson *lesson) {
  double factor = ratio(lesson->found, lesson->expected);
  double rate = LEARNING_RATE * clamp(lesson->moved / MOVED_WELL, 0, 1);

  factor = clamp(factor, 1 / FACTOR_MOST, FACTOR_MOST);
  s->surprise += factor;
  s->lessons++;
  if (lesson->moved > 0)
    s->newness = clamp(s->newness + (factor - 1) / lesson->moved * rate, 0,
                       NEWNESS_MOST);
  experience_add(&s->experience, s->cycle_ns, lesson->found - lesson->expected,
                 lesson->doubted);
}

void sharing_take_lessons(const struct sharing *s,
                          struct sharing_since *since) {
  double before = since->cost;

  if (s->lessons <= 0)
    return;
  scale_cost(since,
             (s->surprise + OTHERS_OPINION) / (s->lessons + OTHERS_OPINION));
  since->moved = clamp(since->moved + distance(since->cost, before), 0, 1);
}
