/* SPDX-License-Identifier: MIT */
#include "folded.h"
#include "text.h"

#include <string.h>

#define NO_GROUP "[no group]"
#define REST "[rest]"

/* Writes an untrusted name as a frame of a stack. */
static void write_frame(const char *name, FILE *out) {
  size_t left = strlen(name);

  if (left == 0)
    fputc('-', out);
  while (left > 0) {
    uint32_t c;
    size_t n = utf8_decode(name, left, &c);

    if (n == 0 || !text_is_plain(c) || c == ';' || c == ' ' || c == 0xa0)
      fputc('_', out);
    else
      fwrite(name, 1, n, out);
    name += n > 0 ? n : 1;
    left -= n > 0 ? n : 1;
  }
}

/* Writes a line, unless PSS is 0 or unknown. No mapping: the whole process. */
static void write_stack(const struct document *d, const struct process *p,
                        const char *mapping, uint64_t pss, FILE *out) {
  const char *scope = document_scope(d);
  const char *group =
      scope && process_is_in(p, scope) ? scope : process_main_group(d, p);

  if (pss == MISSING || pss == 0)
    return;
  write_frame(group ? group : NO_GROUP, out);
  fputc(';', out);
  write_frame(p->title ? p->title : "-", out);
  fprintf(out, "[%ju]", (uintmax_t)p->pid);
  if (mapping) {
    fputc(';', out);
    write_frame(mapping, out);
  }
  fprintf(out, " %ju\n", (uintmax_t)pss);
}

/* False if its PSS is unknown. */
static bool write_process(const struct document *d, const struct process *p,
                          FILE *out) {
  uint64_t pss = amounts_get(&p->amounts, AMOUNT_PSS), listed = 0;
  size_t n_known = 0;

  for (size_t i = 0; i < p->n_mappings; i++) {
    const struct mapping *m = &p->mappings[i];
    uint64_t part = amounts_get(&m->amounts, AMOUNT_PSS);

    write_stack(d, p, m->name ? m->name : REST, part, out);
    listed = amount_add(listed, amount_or_0(part));
    n_known += part != MISSING;
  }
  if (n_known == 0 && process_is_in_parent(p))
    return true;
  if (n_known == 0)
    write_stack(d, p, NULL, pss, out);
  else if (n_known < p->n_mappings && pss != MISSING)
    write_stack(d, p, REST, amount_less(pss, listed), out);
  return n_known > 0 || pss != MISSING;
}

/* Writes the PSS of the members that the capture has left out. */
static void write_rest(const struct document *d, FILE *out) {
  const char *scope = document_scope(d);
  const struct group *g = scope ? document_group(d, scope) : NULL;
  uint64_t pss = g ? amounts_get(&g->amounts, AMOUNT_PSS) : MISSING;
  uint64_t listed = 0;

  if (pss == MISSING || d->left_out == MISSING || d->left_out == 0)
    return;
  for (size_t i = 0; i < d->n_processes; i++)
    if (process_is_in(&d->processes[i], scope) &&
        !process_is_in_parent(&d->processes[i]))
      listed =
          amount_add(listed, amounts_get(&d->processes[i].amounts, AMOUNT_PSS));
  if (listed == MISSING || listed >= pss)
    return;
  write_frame(scope, out);
  fprintf(out, ";" REST " %ju\n", (uintmax_t)(pss - listed));
}

size_t folded_write(const struct document *d, FILE *out) {
  size_t left_out = 0;

  for (size_t i = 0; i < d->n_processes; i++) {
    left_out += !write_process(d, &d->processes[i], out);
    output_check(out);
  }
  write_rest(d, out);
  return left_out;
}
