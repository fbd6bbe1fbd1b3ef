#include "proc/cmdline.h"

#include <assert.h>

static int is_padding(char c) { return c == '\0' || c == ' '; }

/*
 * postgres\0-D\0/srv/data\0
 * sshd: root@pts/0\0\0\0\0\0\0\0
 * postgres: checkpointer            (padded with blanks to the old length)
 */
size_t cmdline_join(const char *text, size_t len, char *ret, size_t size) {
  assert(size > 0);
  if (len > size - 1)
    len = size - 1;
  while (len > 0 && is_padding(text[len - 1]))
    len--;
  for (size_t i = 0; i < len; i++)
    ret[i] = text[i] ? text[i] : ' ';
  ret[len] = '\0';
  return len;
}
