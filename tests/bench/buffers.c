/*
 * Writes the page tables of database backends that share buffers, as files of a
 * made-up /proc: pagemap and kpagecount, sparse where nothing is mapped.
 *
 *   buffers -s SIZE -n BACKENDS DIRECTORY     (at least 10)
 *
 * There are VARIANTS kinds of backends, which differ in how many of the buffers
 * they have touched; backend i is of kind i % VARIANTS. Buffers are 8 KiB. A
 * tenth of them is hot: nearly all backends have touched those. Another
 * process, which is no backend, maps a part too.
 *
 * Each backend also has OWN_PAGES of its own and the TEXT_PAGES of the program.
 * Files: DIRECTORY/pagemap-VARIANT, DIRECTORY/kpagecount. Prints one line of
 * key=value with the exact amounts of each kind, in pages, and the addresses of
 * the mappings.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define PAGE 4096
#define BUFFER_PAGES 2
#define VARIANTS 6
#define BLOCK 65536 /* entries that are written at once */

/* Where the mappings are, and where their pages are in memory. */
#define TEXT_ADDRESS UINT64_C(0x55d0c8000000)
#define TEXT_PAGES UINT64_C(2048)
#define OWN_ADDRESS UINT64_C(0x55d0ca000000)
#define OWN_PAGES UINT64_C(1280)
#define BUFFERS_ADDRESS UINT64_C(0x7f0000000000)
#define ADDRESSES (UINT64_C(1) << 47) /* of a process */
#define TEXT_PFN UINT64_C(4096)
#define OWN_PFN                                                                \
  UINT64_C(8192) /* one range for all: each page is mapped once                \
                  */
#define BUFFERS_PFN UINT64_C(65536)

/* Bits of pagemap, see Documentation/admin-guide/mm/pagemap.rst. */
#define PRESENT (UINT64_C(1) << 63)
#define FILE_PAGE (UINT64_C(1) << 61)
#define EXCLUSIVE (UINT64_C(1) << 56)

/* Per mille of the buffers that each kind has touched, the hot ones apart. */
static const unsigned touched[VARIANTS] = {20, 60, 120, 250, 450, 700};
#define HOT_PER_MILLE 100
#define HOT_TOUCHED 950
#define OTHER_TOUCHED 150 /* by the process that is no backend */

struct writer {
  const char *directory;
  uint64_t pages; /* of the buffers */
  uint64_t backends;
  uint64_t *block;
};

static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* The same answer whenever it is asked, of `kind` VARIANTS too. */
static bool has_touched(unsigned kind, uint64_t page) {
  uint64_t buffer = page / BUFFER_PAGES;
  unsigned chance = kind < VARIANTS ? touched[kind] : OTHER_TOUCHED;

  if (mix(buffer) % 1000 < HOT_PER_MILLE && kind < VARIANTS)
    chance = HOT_TOUCHED;
  return mix(buffer * (VARIANTS + 1) + kind + 1) % 1000 < chance;
}

/* The last two kinds are of two backends and one, and the others of such parts
 * of the rest; the first kind takes what is left over. */
static const unsigned percent[VARIANTS - 2] = {40, 30, 20, 10};

static uint64_t count_of(const struct writer *w, unsigned kind) {
  uint64_t most = w->backends - 3, others = 0;

  if (kind >= VARIANTS - 2)
    return VARIANTS - kind;
  if (kind > 0)
    return most * percent[kind] / 100;
  for (unsigned i = 1; i < VARIANTS - 2; i++)
    others += count_of(w, i);
  return most - others;
}

static uint64_t mappings_of(const struct writer *w, uint64_t page) {
  uint64_t n = has_touched(VARIANTS, page);

  for (unsigned kind = 0; kind < VARIANTS; kind++)
    n += has_touched(kind, page) ? count_of(w, kind) : 0;
  return n;
}

/* ---- files ---- */

static int create_file(const struct writer *w, const char *name) {
  char path[4096];
  int fd;

  snprintf(path, sizeof(path), "%s/%s", w->directory, name);
  fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0)
    bench_die(path);
  return fd;
}

/* Entries of 8 bytes at the place that their number gives. */
static void write_entries(int fd, const uint64_t *entries, size_t n,
                          uint64_t first) {
  size_t bytes = n * sizeof(*entries);

  if (pwrite(fd, entries, bytes, (off_t)(first * sizeof(*entries))) !=
      (ssize_t)bytes)
    bench_die("buffers: write");
}

/* A reader may ask for any address. */
static void close_file(int fd, uint64_t size) {
  if (ftruncate(fd, (off_t)size) < 0 || close(fd) < 0)
    bench_die("buffers: close");
}

/* `n` pages that lie one after the other, with the same bits. */
static void write_run(const struct writer *w, int fd, uint64_t address,
                      uint64_t n, uint64_t pfn, uint64_t bits) {
  for (uint64_t i = 0; i < n; i++)
    w->block[i] = PRESENT | bits | (pfn + i);
  write_entries(fd, w->block, n, address / PAGE);
}

struct amounts {
  uint64_t touched, exclusive;
  double price;
};

static struct amounts write_buffers(const struct writer *w, int fd,
                                    unsigned kind) {
  struct amounts sum = {0};

  for (uint64_t at = 0; at < w->pages; at += BLOCK) {
    uint64_t n = w->pages - at < BLOCK ? w->pages - at : BLOCK;

    for (uint64_t i = 0; i < n; i++) {
      uint64_t mappings;

      w->block[i] = 0;
      if (!has_touched(kind, at + i))
        continue;
      mappings = mappings_of(w, at + i);
      w->block[i] = PRESENT | FILE_PAGE | (BUFFERS_PFN + at + i) |
                    (mappings == 1 ? EXCLUSIVE : 0);
      sum.touched++;
      sum.exclusive += mappings == 1;
      sum.price += 1.0 / (double)mappings;
    }
    write_entries(fd, w->block, n, BUFFERS_ADDRESS / PAGE + at);
  }
  return sum;
}

static void write_pagemap(const struct writer *w, unsigned kind) {
  struct amounts sum;
  char name[32];
  int fd;

  snprintf(name, sizeof(name), "pagemap-%u", kind);
  fd = create_file(w, name);
  write_run(w, fd, TEXT_ADDRESS, TEXT_PAGES, TEXT_PFN, FILE_PAGE);
  write_run(w, fd, OWN_ADDRESS, OWN_PAGES, OWN_PFN, EXCLUSIVE);
  sum = write_buffers(w, fd, kind);
  close_file(fd, ADDRESSES / PAGE * sizeof(uint64_t));
  printf("kind=%u backends=%" PRIu64 " touched=%" PRIu64 " exclusive=%" PRIu64
         " price_micro=%.0f\n",
         kind, count_of(w, kind), sum.touched, sum.exclusive, 1e6 * sum.price);
}

static void write_counts(const struct writer *w) {
  int fd = create_file(w, "kpagecount");

  for (uint64_t i = 0; i < TEXT_PAGES; i++)
    w->block[i] = w->backends;
  write_entries(fd, w->block, TEXT_PAGES, TEXT_PFN);
  for (uint64_t i = 0; i < OWN_PAGES; i++)
    w->block[i] = 1;
  write_entries(fd, w->block, OWN_PAGES, OWN_PFN);
  for (uint64_t at = 0; at < w->pages; at += BLOCK) {
    uint64_t n = w->pages - at < BLOCK ? w->pages - at : BLOCK;

    for (uint64_t i = 0; i < n; i++)
      w->block[i] = mappings_of(w, at + i);
    write_entries(fd, w->block, n, BUFFERS_PFN + at);
  }
  close_file(fd, (BUFFERS_PFN + w->pages) * sizeof(uint64_t));
}

/* ---- options ---- */

__attribute__((noreturn)) static void usage(void) {
  fprintf(stderr, "usage: buffers -s SIZE -n BACKENDS DIRECTORY\n");
  exit(2);
}

int main(int argc, char **argv) {
  struct writer w = {.block = calloc(BLOCK, sizeof(*w.block))};
  int option;

  while ((option = getopt(argc, argv, "s:n:")) != -1) {
    if (option == '?')
      usage();
    if (option == 's')
      w.pages = bench_number_option('s', optarg) / PAGE;
    if (option == 'n')
      w.backends = bench_number_option('n', optarg);
  }
  if (argc - optind != 1 || w.pages == 0 || w.backends < 10 || !w.block)
    usage();
  w.directory = argv[optind];
  printf("kinds=%d pages=%" PRIu64 " text_pages=%" PRIu64 " own_pages=%" PRIu64
         " text=%" PRIu64 " own=%" PRIu64 " buffers=%" PRIu64 "\n",
         VARIANTS, w.pages, TEXT_PAGES, OWN_PAGES, TEXT_ADDRESS, OWN_ADDRESS,
         BUFFERS_ADDRESS);
  for (unsigned kind = 0; kind < VARIANTS; kind++)
    write_pagemap(&w, kind);
  write_counts(&w);
  free(w.block);
  return 0;
}
