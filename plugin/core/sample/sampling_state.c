#include "sample/sampling_state.h"

#include <stdlib.h>

#include "sample/page_layout.h"

void sampling_free(struct sampling *s) {
  if (s)
    page_layout_drop(s->layout);
  free(s);
}
