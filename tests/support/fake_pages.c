#include "fake_pages.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATH_SIZE 512

static void fail(const char *what) {
  perror(what);
  abort();
}

void fake_pages_map(const struct proctree *t, uint32_t pid,
                    const struct fake_range *ranges, size_t n) {
  char path[32], *text = NULL;
  size_t len = 0;
  FILE *out = open_memstream(&text, &len);

  if (!out)
    fail("open_memstream");
  for (size_t i = 0; i < n; i++)
    fprintf(out, "%" PRIx64 "-%" PRIx64 " %s 00000000 00:00 0 %s%s\n",
            ranges[i].start, ranges[i].end,
            ranges[i].permissions ? ranges[i].permissions : "rw-p",
            ranges[i].name ? "                 " : "",
            ranges[i].name ? ranges[i].name : "");
  fclose(out);
  snprintf(path, sizeof(path), "%u/maps", pid);
  proctree_write(t, path, text, len);
  free(text);
}

/* The files are sparse: most pages of an address space are not present. */
static void put_numbers(const struct proctree *t, const char *path,
                        uint64_t first, const uint64_t *numbers, size_t n) {
  char whole[PATH_SIZE];
  size_t size = n * sizeof(*numbers);
  int fd;

  snprintf(whole, sizeof(whole), "%s/%s", t->root, path);
  fd = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0 || pwrite(fd, numbers, size, (off_t)(first * sizeof(*numbers))) !=
                    (ssize_t)size)
    fail(whole);
  close(fd);
}

void fake_pages_put_each(const struct proctree *t, uint32_t pid, uint64_t page,
                         const uint64_t *entries, size_t n) {
  char path[32];

  snprintf(path, sizeof(path), "%u/pagemap", pid);
  put_numbers(t, path, page, entries, n);
}

void fake_pages_put(const struct proctree *t, uint32_t pid, uint64_t page,
                    size_t n, uint64_t entry, uint64_t frame) {
  uint64_t *entries = calloc(n, sizeof(*entries));

  if (!entries)
    fail("calloc");
  for (size_t i = 0; i < n; i++)
    entries[i] = entry | (frame ? frame + i : 0);
  fake_pages_put_each(t, pid, page, entries, n);
  free(entries);
}

void fake_pages_count_each(const struct proctree *t, uint64_t frame,
                           const uint64_t *mappings, size_t n) {
  put_numbers(t, "kpagecount", frame, mappings, n);
}

void fake_pages_count(const struct proctree *t, uint64_t frame, size_t n,
                      uint64_t mappings) {
  uint64_t *numbers = calloc(n, sizeof(*numbers));

  if (!numbers)
    fail("calloc");
  for (size_t i = 0; i < n; i++)
    numbers[i] = mappings;
  fake_pages_count_each(t, frame, numbers, n);
  free(numbers);
}
