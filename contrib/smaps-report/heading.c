/* SPDX-License-Identifier: MIT */
#include "heading.h"

#include <math.h>
#include <time.h>

static void print_end(const struct document *d, const struct style *s) {
  double last_known = document_last_known(d);
  struct text t = {0};

  if (isnan(last_known))
    return;
  text_add(&t, "The processes of ");
  text_add_name(&t, document_scope(d), s);
  text_add(&t, " had ended: its values are the last known, of ");
  text_add_time(&t, last_known);
  text_print(&t, COLOUR_BOLD, s);
  text_done(&t);
}

/* A StateFile that is older is not written any more. A state may take an
 * interval longer, and a busy machine a minute. */
static double oldest_due(const struct document *d) {
  double interval = isnan(d->interval) ? 0 : d->interval;

  return 60 + 2 * (d->state_interval + interval);
}

void heading_print_age(const struct document *d, const struct style *s) {
  double age = (double)time(NULL) - d->time;
  struct text t = {0};

  /* False if either is NaN. */
  if (!(age > oldest_due(d)))
    return;
  text_add(&t, "This state is ");
  text_add_seconds(&t, age);
  text_add(&t, " old, with StateInterval ");
  text_addf(&t, "%g", d->state_interval);
  text_add(&t, ": collectd has ended, or could not write it (see its log).");
  text_print(&t, COLOUR_BOLD, s);
  text_done(&t);
}

void heading_print(const struct document *d, const struct style *s) {
  struct style whole = *s;
  struct text t = {0};

  text_add_name(&t, d->host ? d->host : "-", s);
  text_add(&t, ", ");
  text_add_time(&t, d->time);
  if (d->trigger.message) {
    text_add(&t, ": ");
    text_add_name(&t, d->trigger.message, s);
    whole.width = 0; /* its end says what is wrong */
  }
  text_print(&t, COLOUR_BOLD, &whole);
  text_done(&t);
  heading_print_age(d, s);
  print_end(d, s);
}

void heading_write(const struct document *d, struct json_lines *j) {
  json_lines_text(j, "host", d->host);
  json_lines_real(j, "time", d->time);
  json_lines_text(j, "severity", d->trigger.severity);
  json_lines_text(j, "type", d->trigger.type);
  json_lines_text(j, "type_instance", d->trigger.type_instance);
  json_lines_real(j, "state_interval", d->state_interval);
  json_lines_text(j, "message", d->trigger.message);
  json_lines_real(j, "last_known", document_last_known(d));
}
