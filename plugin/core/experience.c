#include <smaps/experience.h>

#define FORGETTING_RATE 0.1
#define ERROR_LEAST 0.02

static void conclude(struct experience *x) {
  double error;

  if (x->doubted <= 0)
    return;
  error = x->missed / x->doubted;
  error = error < ERROR_LEAST ? ERROR_LEAST : error > 1 ? 1 : error;
  x->error += (error - x->error) * (error > x->error ? 1 : FORGETTING_RATE);
  x->missed = x->doubted = 0;
}

void experience_add(struct experience *x, uint64_t cycle_ns, double missed,
                    double doubted) {
  experience_error(x, cycle_ns);
  x->missed += missed < 0 ? -missed : missed;
  x->doubted += doubted;
}

double experience_error(struct experience *x, uint64_t cycle_ns) {
  if (x->cycle_ns != cycle_ns)
    conclude(x);
  x->cycle_ns = cycle_ns;
  return x->error;
}
