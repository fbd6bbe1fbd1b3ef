/*
 * Samples of a real process on the running kernel, beside its own rollup. They
 * need the frames of pages, so root, and are skipped without; with a sanitizer,
 * whose terabytes of shadow memory make each process a sparse one; and
 * emulated.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proc/cheap_files.h"
#include "proc/rollup.h"
#include "sample/page_sample.h"
#include <smaps/kernel.h>

#include "machine.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW true
#else
#define HAS_SHADOW false
#endif

#define CHILDREN 3

static size_t page_size;

static uint64_t clock_ns(void) {
  struct timespec t;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* --- memory --- */

static char *map(size_t bytes, int flags, int fd) {
  char *memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);

  if (memory == MAP_FAILED)
    abort();
  if (flags & MAP_ANONYMOUS)
    madvise(memory, bytes, MADV_NOHUGEPAGE);
  return memory;
}

static void write_pages(char *memory, size_t bytes, size_t apart) {
  for (size_t i = 0; i < bytes; i += apart)
    memory[i] = 1;
}

static volatile char read_byte; /* valgrind drops what is not used */

static void read_pages(volatile const char *memory, size_t bytes) {
  for (size_t i = 0; i < bytes; i += page_size)
    read_byte = memory[i];
}

/* Memory of its own, a quarter of what it had in common with its parent, and
 * zero pages. */
static void be_dense(char *common, char *shared) {
  write_pages(map(16 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), 16 * MIB,
              page_size);
  write_pages(common, 2 * MIB, page_size);
  read_pages(shared, 8 * MIB);
  read_pages(map(4 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1), 4 * MIB);
}

/* Also with the huge zero page, where there are huge pages. */
static void be_dense_and_huge(char *common, char *shared) {
  char *zero = map(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);

  be_dense(common, shared);
  madvise(zero, 8 * MIB, MADV_HUGEPAGE);
  read_pages(zero, 8 * MIB);
}

#define HAS_ADDRESSES (sizeof(void *) > 4)
#define SPARSE_BYTES ((size_t)(HAS_ADDRESSES ? 4096 * MIB : 1024 * MIB))

/* Single pages and dense parts, in more than is drawn from whole. */
static void be_sparse(char *common, char *shared) {
  char *memory = map(SPARSE_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);

  (void)common;
  (void)shared;
  write_pages(memory, SPARSE_BYTES, 8 * MIB);
  write_pages(memory + SPARSE_BYTES / 4, 4 * MIB, page_size);
  write_pages(memory + SPARSE_BYTES / 4 * 3, 8 * MIB, page_size);
}

/* --- processes --- */

struct family {
  pid_t children[CHILDREN];
  struct procfs *procfs;
  atomic_uint heartbeat;
  struct page_reader reader;
  struct proc_ref ref; /* the first of them */
};

static void end_family(struct family *f) {
  for (int i = 0; i < CHILDREN; i++) {
    kill(f->children[i], SIGKILL);
    waitpid(f->children[i], NULL, 0);
  }
  procfs_free(f->procfs);
}

static void look_up(struct family *f) {
  struct statm_sample statm;
  uint64_t ino;
  int fd = -1;

  f->ref = (struct proc_ref){.pid = (uint32_t)f->children[0]};
  assert_int_equal(procfs_open_process(f->procfs, f->ref.pid, &fd), 0);
  assert_int_equal(procfs_inode(fd, &ino), 0);
  assert_int_equal(statm_read(f->procfs, fd, &statm), 0);
  close(fd);
  f->ref.ino = (uint32_t)ino;
  f->ref.resident_pages = statm.resident_pages;
}

static void start_child(int ready, void (*be)(char *, char *), char *common,
                        char *shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  be(common, shared);
  if (write(ready, "x", 1) != 1)
    abort();
  for (;;)
    pause();
}

enum shared_kind { OF_FILE, OF_SHMEM };

static char *map_shared(size_t bytes, enum shared_kind kind) {
  FILE *file;
  char *memory;

  if (kind == OF_SHMEM)
    return map(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
  file = tmpfile();
  if (!file || ftruncate(fileno(file), (off_t)bytes) != 0)
    abort();
  memory = map(bytes, MAP_SHARED, fileno(file));
  fclose(file);
  return memory;
}

/* Children with memory in common by copy on write and by a shared mapping. */
static void start_family(struct family *f, void (*be)(char *, char *),
                         enum shared_kind kind) {
  char *common, *shared;
  int ready[2];
  char x;

  if (HAS_SHADOW || machine_is_emulated())
    skip();
  alarm(300); /* A child that fails is waited for in vain. */
  page_size = (size_t)getpagesize();
  common = map(8 * MIB, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  shared = map_shared(8 * MIB, kind);
  write_pages(common, 8 * MIB, page_size);
  write_pages(shared, 8 * MIB, page_size);
  assert_int_equal(pipe(ready), 0);
  *f = (struct family){.ref = {.pid = 0}};
  for (int i = 0; i < CHILDREN; i++) {
    f->children[i] = fork();
    if (f->children[i] == 0)
      start_child(ready[1], be, common, shared);
  }
  for (int i = 0; i < CHILDREN; i++)
    assert_int_equal(read(ready[0], &x, 1), 1);
  close(ready[0]);
  close(ready[1]);
  munmap(common, 8 * MIB);
  munmap(shared, 8 * MIB);
  assert_int_equal(procfs_new("/proc", &f->procfs), 0);
  f->reader = (struct page_reader){.procfs = f->procfs,
                                   .page_size = page_size,
                                   .clock_ns = clock_ns,
                                   .heartbeat = &f->heartbeat};
  look_up(f);
}

/* --- what the kernel says, and the sample --- */

static void read_rollup(const struct family *f, struct rollup *ret) {
  struct span text;

  assert_int_equal(procfs_read_of(f->procfs, f->ref.pid, "smaps_rollup", &text),
                   0);
  assert_int_equal(rollup_parse(text.text, text.len, ret), 0);
}

/* False where frames are hidden from us. */
static bool read_sample(struct family *f, uint32_t wanted,
                        struct page_layout *layout, struct page_sample *ret) {
  const struct page_request request = {.pages_wanted = wanted,
                                       .layout = layout,
                                       .wants_probe = true,
                                       .seed = 42};
  int rc = page_sample_read(&f->reader, &f->ref, &request, ret);

  if (rc == PROCFS_DENIED || rc == -ENOSYS)
    return false;
  assert_int_equal(rc, 0);
  if (ret->has_mapcounts)
    return true;
  page_layout_drop(ret->layout);
  return false;
}

static uint64_t scale(uint64_t pages, double part, uint32_t of) {
  return of == 0 ? 0 : (uint64_t)((double)(pages * page_size) * part / of);
}

static uint64_t uss_of(const struct page_sample *s) {
  uint64_t anon = s->statm.resident_pages - s->statm.shared_pages;

  return scale(anon, s->kinds[PAGE_ANON].exclusive, s->kinds[PAGE_ANON].pages) +
         scale(s->statm.shared_pages, s->kinds[PAGE_FILE].exclusive,
               s->kinds[PAGE_FILE].pages);
}

static uint64_t pss_of(const struct page_sample *s) {
  uint64_t anon = s->statm.resident_pages - s->statm.shared_pages;

  return scale(anon, s->kinds[PAGE_ANON].price, s->kinds[PAGE_ANON].pages) +
         scale(s->statm.shared_pages, s->kinds[PAGE_FILE].price,
               s->kinds[PAGE_FILE].pages);
}

static void assert_within(uint64_t a, uint64_t b, uint64_t slack) {
  if (a > b ? a - b > slack : b - a > slack)
    fail_msg("%llu is not within %llu of %llu", (unsigned long long)a,
             (unsigned long long)slack, (unsigned long long)b);
}

/* A family, one sample of it and the rollup; the test is skipped where frames
 * are hidden. */
static struct page_sample look_at(void (*be)(char *, char *),
                                  enum shared_kind kind, uint32_t wanted,
                                  struct rollup *ret) {
  struct page_sample s;
  struct family f;
  bool has_sample;

  start_family(&f, be, kind);
  has_sample = read_sample(&f, wanted, NULL, &s);
  read_rollup(&f, ret);
  end_family(&f);
  if (!has_sample)
    skip();
  page_layout_drop(s.layout);
  return s;
}

static void assert_amounts(const struct page_sample *s,
                           const struct rollup *rollup, uint64_t slack) {
  assert_within(uss_of(s), rollup_uss(rollup), slack);
  assert_within(pss_of(s), rollup->bytes[ROLLUP_PSS], slack);
}

static void assert_resident(const struct page_sample *s) {
  assert_within(s->kinds[PAGE_ANON].pages,
                s->statm.resident_pages - s->statm.shared_pages, 256);
  assert_within(s->kinds[PAGE_FILE].pages, s->statm.shared_pages, 256);
}

/* --- tests --- */

/* All pages, instead of some. Libraries have other users, which come and go. */
TEST(whole_process_is_what_its_rollup_says) {
  struct rollup rollup;
  struct page_sample s = look_at(be_dense, OF_FILE, 1000000, &rollup);

  assert_resident(&s); /* with neither zero pages nor those of the kernel */
  assert_false(s.has_census);
  assert_int_equal(s.shmem.pages, 0);
  assert_amounts(&s, &rollup, 512 * KIB);
}

/* The shmem is looked up whole; the rest is counted, without the 12 MiB of zero
 * pages as far as 16 pages of each kind show them: 4 standard deviations. The
 * memory in common has the same price in all of its pages. */
TEST(counted_process_is_what_its_rollup_says) {
  struct rollup rollup;
  struct page_sample s = look_at(be_dense_and_huge, OF_SHMEM, 1000000, &rollup);

  assert_true(s.has_census);
  assert_within(s.shmem.pages * page_size, 8 * MIB, 0);
  assert_within((uint64_t)(s.shmem.price * (double)page_size),
                8 * MIB / CHILDREN, 64 * KIB);
  assert_int_equal(s.shmem.exclusive, 0);
  assert_within(((uint64_t)s.census[PAGE_ANON].exclusive +
                 s.census[PAGE_FILE].exclusive) *
                    page_size,
                rollup_uss(&rollup), 512 * KIB);
  assert_within(s.census[PAGE_ANON].pages * page_size,
                rollup.bytes[ROLLUP_ANONYMOUS], 5 * MIB);
  assert_within((s.census[PAGE_FILE].pages + s.shmem.pages) * page_size,
                s.statm.shared_pages * page_size, 4 * MIB);
  assert_true(s.kinds[PAGE_ANON].pages > 0);
  assert_within((uint64_t)(s.kinds[PAGE_ANON].price * 1000),
                s.kinds[PAGE_ANON].pages * 1000 / CHILDREN,
                s.kinds[PAGE_ANON].pages * 100);
}

/* Large pages are present, and in no resident size. */
static void be_huge(char *common, char *shared) {
  (void)common;
  (void)shared;
  write_pages(map(4 * MIB, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1),
              4 * MIB, page_size);
  write_pages(
      map(2 * MIB, MAP_SHARED, memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB)),
      2 * MIB, page_size);
}

static bool has_free_huge_pages(void) {
  FILE *in =
      fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
  unsigned n = 0;
  bool has = in && fscanf(in, "%u", &n) == 1 && n >= 16;

  if (in)
    fclose(in);
  return has;
}

/* Only where an administrator has reserved some. */
TEST(huge_pages_are_not_found) {
  struct rollup rollup;
  struct page_sample s;

  if (!has_free_huge_pages())
    skip();
  s = look_at(be_huge, OF_FILE, 1000000, &rollup);
  assert_resident(&s);
  assert_int_equal(s.huge_windows, 0);
}

/* Hides the frames from us, or shows them again; false if that is refused. */
static bool show_frames(bool shows) {
  struct __user_cap_header_struct header = {.version =
                                                _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct data[2] = {{0}};
  const uint32_t bit = 1U << CAP_SYS_ADMIN;

  if (syscall(SYS_capget, &header, data) != 0 || !(data[0].permitted & bit))
    return false;
  if (shows)
    data[0].effective |= bit;
  else
    data[0].effective &= ~bit;
  return syscall(SYS_capset, &header, data) == 0;
}

/* PAGEMAP_SCAN still tells zero pages, which nobody pays for, from shared
 * ones. */
TEST(without_frames_zero_pages_are_not_found) {
  const struct page_request request = {.pages_wanted = 1000000};
  struct page_sample s;
  struct family f;
  unsigned major, minor;
  bool is_hidden;
  int rc;

  if (!kernel_release(&major, &minor) || major * 100 + minor < 607)
    skip();
  start_family(&f, be_dense, OF_FILE);
  is_hidden = show_frames(false);
  rc = page_sample_read(&f.reader, &f.ref, &request, &s);
  if (is_hidden)
    assert_true(show_frames(true));
  end_family(&f);
  if (!is_hidden)
    skip();
  assert_int_equal(rc, 0);
  assert_false(s.has_mapcounts);
  assert_within(s.kinds[PAGE_ANON].pages,
                s.statm.resident_pages - s.statm.shared_pages, 256);
  assert_true(s.kinds[PAGE_ANON].exclusive >= 16 * MIB / page_size);
  assert_true(s.kinds[PAGE_ANON].exclusive < s.kinds[PAGE_ANON].pages);
  page_layout_drop(s.layout);
}

/* 5 standard deviations of a part among 1,000: 8 % at most. */
TEST(some_pages_are_near_the_rollup) {
  struct rollup rollup;
  struct page_sample s = look_at(be_dense, OF_FILE, 1000, &rollup);

  assert_true(s.probe_pages > 0 && s.probe_ns > 0);
  assert_int_equal(s.huge_windows, 0);
  assert_amounts(&s, &rollup, rollup.bytes[ROLLUP_RSS] * 8 / 100);
}

/* In steps, the layout comes to have what is present. */
TEST(sparse_process_is_refined) {
  struct page_layout *layout = NULL;
  struct rollup rollup;
  struct page_sample s;
  struct family f;
  uint64_t pages = UINT64_MAX;
  bool has_sample = true;

  start_family(&f, be_sparse, OF_FILE);
  for (int i = 0; has_sample && pages > f.ref.resident_pages && i < 1000; i++) {
    has_sample = read_sample(&f, 500, layout, &s);
    page_layout_drop(layout);
    layout = has_sample ? s.layout : NULL;
    pages = layout ? page_layout_pages(layout, PAGES_ALL) : 0;
  }
  read_rollup(&f, &rollup);
  end_family(&f);
  if (!has_sample)
    skip();
  assert_within(pages, rollup.bytes[ROLLUP_RSS] / page_size, 256);
  assert_int_equal(s.looked_at, 500);
  assert_within(uss_of(&s), rollup_uss(&rollup),
                rollup.bytes[ROLLUP_RSS] * 12 / 100);
  page_layout_drop(layout);
}
