#include "html.h"
#include "output.h"
#include "page.h"
#include "page_data.h"

void html_write(struct document *d, struct document *old, FILE *out) {
  fwrite(page_head, 1, page_head_size, out);
  output_check(out);
  page_data_write(d, old, out);
  fwrite(page_tail, 1, page_tail_size, out);
  output_check(out);
}
