#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fail(int error) {
  if (error != EPIPE)
    fprintf(stderr, "smaps-report: cannot write: %s\n", strerror(error));
  exit(2);
}

void output_check(FILE *out) {
  if (ferror(out))
    fail(errno);
}

void output_finish(FILE *out) {
  if (fflush(out) != 0 || ferror(out))
    fail(errno);
}
