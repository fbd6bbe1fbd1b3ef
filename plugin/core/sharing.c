#include <smaps/sharing.h>

/* How far one reading, or the readings of one cycle, speak for all. */
#define LEARNING_RATE 0.25
/* After less has moved there is less to learn. */
#define MOVED_WELL 0.05
#define NEWNESS_MOST 20.0
/* Of what earlier readings said about shmem and files. */
#define LEAD_KEPT 0.95
/* One member's surprise is not more than this to the others. */
#define FACTOR_MOST 2.0

static double clamp(double x, double least, double most) {
  return x < least ? least : x > most ? most : x;
}

void sharing_init(struct sharing *s, const struct sharing *from,
                  uint64_t pages) {
  *s =
      (struct sharing){.is_settled = true,
                       .now = (double)pages,
                       .cost = from ? from->cost : 1,
                       .moved = from ? from->moved : 0,
                       .is_shmem = from && from->is_shmem,
                       .shmem_lead = from ? from->shmem_lead : 0,
                       .newness = from ? from->newness : 0,
                       .experience = from ? from->experience : EXPERIENCE_NONE};
}

void sharing_count(struct sharing *s, uint64_t cycle_ns, uint64_t pages,
                   uint64_t before) {
  if (s->cycle_ns != cycle_ns) {
    s->cycle_ns = cycle_ns;
    s->is_settled = false;
    s->before = s->now;
    s->left = s->grown = s->now = 0;
  }
  s->now += (double)pages;
  if (before == 0)
    return;
  s->left += (double)before;
  s->grown += (double)pages;
}

void sharing_correct(struct sharing *s, double pages) { s->now += pages; }

static double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 1; }

static double distance(double a, double b) { return a > b ? a - b : b - a; }

/*
 * Who comes and goes takes up or leaves behind pages that the others have too.
 * Who is there and touches more may find some that nobody had.
 */
static void settle(struct sharing *s) {
  double most = s->before > s->now ? s->before : s->now;
  double grown = s->grown - s->left;

  if (s->is_settled)
    return;
  s->is_settled = true;
  s->cost *= ratio(s->before, s->left) * ratio(s->grown, s->now) *
             ratio(s->left + (grown > 0 ? grown * s->newness : 0), s->grown);
  if (s->before > 0)
    s->moved += (distance(s->before, s->left) + distance(s->left, s->grown) +
                 distance(s->grown, s->now)) /
                most;
}

struct sharing_mark sharing_mark(struct sharing *s, uint64_t file_bytes,
                                 uint64_t shmem_bytes) {
  settle(s);
  s->shmem_lead =
      s->shmem_lead * LEAD_KEPT + (double)shmem_bytes - (double)file_bytes;
  s->is_shmem = s->shmem_lead > 0;
  return (struct sharing_mark){.cost = (float)s->cost, .moved = s->moved};
}

void sharing_end_lessons(const struct sharing *s, struct sharing_mark *mark) {
  mark->cost = (float)s->cost;
}

double sharing_cost_since(struct sharing *s, const struct sharing_mark *mark) {
  settle(s);
  /* Rounded as the mark is, so that nothing is exactly 1. */
  return ratio((double)(float)s->cost, (double)mark->cost);
}

double sharing_moved_since(struct sharing *s, const struct sharing_mark *mark) {
  settle(s);
  return clamp(s->moved - mark->moved, 0, 1);
}

void sharing_learn(struct sharing *s, const struct sharing_lesson *lesson) {
  double factor = ratio(lesson->found, lesson->expected);
  double rate = LEARNING_RATE * clamp(lesson->moved / MOVED_WELL, 0, 1);

  factor = clamp(factor, 1 / FACTOR_MOST, FACTOR_MOST);
  s->cost *= 1 + (factor - 1) * LEARNING_RATE;
  if (lesson->moved > 0)
    s->newness = clamp(s->newness + (factor - 1) / lesson->moved * rate, 0,
                       NEWNESS_MOST);
  experience_add(&s->experience, s->cycle_ns, lesson->found - lesson->expected,
                 lesson->doubted);
}
