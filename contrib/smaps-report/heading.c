#include "heading.h"

#include <math.h>

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
  print_end(d, s);
}

void heading_write(const struct document *d, struct json_lines *j) {
  json_lines_text(j, "host", d->host);
  json_lines_real(j, "time", d->time);
  json_lines_text(j, "severity", d->trigger.severity);
  json_lines_text(j, "type", d->trigger.type);
  json_lines_text(j, "type_instance", d->trigger.type_instance);
  json_lines_text(j, "message", d->trigger.message);
  json_lines_real(j, "last_known", document_last_known(d));
}
