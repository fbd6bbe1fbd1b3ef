#include "sum.h"
#include "memory.h"

#include <math.h>
#include <string.h>

void sum_begin(struct sum *s) { *s = (struct sum){0}; }

void sum_add_amounts(struct sum *s, const struct amounts *a) {
  for (unsigned i = 0; i < AMOUNTS; i++)
    s->values[i] = amount_add(s->values[i], amounts_get(a, i));
}

void sum_add_process(struct sum *s, const struct process *p) {
  s->processes++;
  s->threads = amount_add(s->threads, p->threads);
  if (p->source && strcmp(p->source, "unreadable") == 0)
    s->unreadable++;
  if (!process_is_in_parent(p))
    sum_add_amounts(s, &p->amounts);
}

void sum_finish(const struct sum *s, const char *name, struct pool *pool,
                struct group *ret) {
  *ret = (struct group){.name = name,
                        .rule = UNKNOWN,
                        .processes = s->processes,
                        .threads = s->threads,
                        .unreadable = s->unreadable,
                        .coverage = (double)NAN,
                        .age = (double)NAN,
                        .pss_error = UNKNOWN,
                        .uss_error = UNKNOWN};
  if (!amounts_pack(&ret->amounts, pool, s->values))
    memory_check(NULL);
}
