/* One page that shows a snapshot, and its changes since an older one. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "document.h"

#include <stdio.h>

/* `old` may be NULL. Sums are in the pools of the documents. */
void html_write(struct document *d, struct document *old, FILE *out);

#endif
