#include <smaps/experience.h>

/* The worst is forgotten more slowly than what is usual. */
#define FORGETTING_RATE 0.1
#define WORST_FORGETTING_RATE 0.02
#define ERROR_LEAST 0.02
/* What could have been off is a guess itself. */
#define WORST_MOST 2.0

static double follow(double known, double seen, double rate) {
  return seen > known ? seen : known + (seen - known) * rate;
}

static void conclude(struct experience *x) {
  double error;

  if (x->doubted <= 0)
    return;
  error = x->missed / x->doubted;
  error = error < ERROR_LEAST ? ERROR_LEAST : error > 1 ? 1 : error;
  x->error = follow(x->error, error, FORGETTING_RATE);
  x->worst = follow(x->worst, x->cycle_worst, WORST_FORGETTING_RATE);
  x->missed = x->doubted = x->cycle_worst = 0;
}

void experience_add(struct experience *x, uint64_t cycle_ns, double missed,
                    double doubted) {
  double off = missed < 0 ? -missed : missed;
  double part = doubted > 0 ? off / doubted : 0;

  experience_conclude(x, cycle_ns);
  x->missed += off;
  x->doubted += doubted;
  if (part > x->cycle_worst)
    x->cycle_worst = part < WORST_MOST ? part : WORST_MOST;
}

void experience_conclude(struct experience *x, uint64_t cycle_ns) {
  if (x->cycle_ns != cycle_ns)
    conclude(x);
  x->cycle_ns = cycle_ns;
}
