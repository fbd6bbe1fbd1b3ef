#include "folded.h"
#include "output.h"
#include "utf8.h"

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

    if (n == 0 || !utf8_is_plain(c) || c == ';' || c == ' ' || c == 0xa0)
      fputc('_', out);
    else
      fwrite(name, 1, n, out);
    name += n > 0 ? n : 1;
    left -= n > 0 ? n : 1;
  }
}

static void write_process_frames(const struct document *d,
                                 const struct process *p, FILE *out) {
  const char *scope = document_scope(d);
  const char *group =
      scope && process_is_in(p, scope) ? scope : process_main_group(d, p);

  write_frame(group ? group : NO_GROUP, out);
  fputc(';', out);
  write_frame(p->title ? p->title : "-", out);
  fprintf(out, "[%ju]", (uintmax_t)p->pid);
}

static void write_mapping(const struct document *d, const struct process *p,
                          const struct mapping *m, FILE *out) {
  uint64_t pss = amounts_get(&m->amounts, AMOUNT_PSS);

  if (pss == UNKNOWN || pss == 0)
    return;
  write_process_frames(d, p, out);
  fputc(';', out);
  write_frame(m->name ? m->name : REST, out);
  fprintf(out, " %ju\n", (uintmax_t)pss);
}

/* Adds up the PSS of its mappings, as far as it is known; UNKNOWN if it is
 * known of none. */
static uint64_t sum_mappings(const struct process *p, bool *ret_is_whole) {
  uint64_t sum = UNKNOWN;

  *ret_is_whole = true;
  for (size_t i = 0; i < p->n_mappings; i++) {
    uint64_t pss = amounts_get(&p->mappings[i].amounts, AMOUNT_PSS);

    if (pss == UNKNOWN)
      *ret_is_whole = false;
    else
      sum = sum == UNKNOWN ? pss : amount_add(sum, pss);
  }
  return sum;
}

/* The PSS of its mappings that have none of their own. */
static void write_unknown(const struct document *d, const struct process *p,
                          uint64_t listed, FILE *out) {
  uint64_t pss = amounts_get(&p->amounts, AMOUNT_PSS);

  if (pss == UNKNOWN || pss <= listed)
    return;
  write_process_frames(d, p, out);
  fprintf(out, ";" REST " %ju\n", (uintmax_t)(pss - listed));
}

/* False if its PSS is unknown. */
static bool write_process(const struct document *d, const struct process *p,
                          FILE *out) {
  uint64_t pss = amounts_get(&p->amounts, AMOUNT_PSS);
  bool is_whole;
  uint64_t listed = sum_mappings(p, &is_whole);

  for (size_t i = 0; i < p->n_mappings; i++)
    write_mapping(d, p, &p->mappings[i], out);
  if (listed != UNKNOWN && !is_whole)
    write_unknown(d, p, listed, out);
  if (listed != UNKNOWN || process_is_in_parent(p))
    return true;
  if (pss == UNKNOWN)
    return false;
  if (pss == 0)
    return true;
  write_process_frames(d, p, out);
  fprintf(out, " %ju\n", (uintmax_t)pss);
  return true;
}

/* Writes the PSS of the members that the capture has left out. */
static void write_rest(const struct document *d, FILE *out) {
  const char *scope = document_scope(d);
  const struct group *g = scope ? document_group(d, scope) : NULL;
  uint64_t pss = g ? amounts_get(&g->amounts, AMOUNT_PSS) : UNKNOWN;
  uint64_t listed = 0;

  if (pss == UNKNOWN || d->left_out == UNKNOWN || d->left_out == 0)
    return;
  for (size_t i = 0; i < d->n_processes; i++)
    if (process_is_in(&d->processes[i], scope) &&
        !process_is_in_parent(&d->processes[i]))
      listed =
          amount_add(listed, amounts_get(&d->processes[i].amounts, AMOUNT_PSS));
  if (listed == UNKNOWN || listed >= pss)
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
