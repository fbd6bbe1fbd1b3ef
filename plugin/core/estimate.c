#include <smaps/estimate.h>

#include <string.h>

#include <smaps/amount.h>

#define KIB UINT64_C(1024)

/* Of what others share with a process, as much a second may change with nothing
 * to be seen of it here. */
#define DRIFT_PER_SECOND 0.001

static uint64_t distance(uint64_t a, uint64_t b) {
  return a > b ? a - b : b - a;
}

bool reading_take(struct reading *r, const struct rollup *rollup,
                  const struct evidence *e) {
  struct reading made = {.at_ns = e->now_ns,
                         .minor_faults = e->minor_faults,
                         .known = rollup->known,
                         .resident_pages = (uint32_t)e->statm.resident_pages,
                         .shared_pages = (uint32_t)e->statm.shared_pages,
                         .vm_swap_kb = (uint32_t)e->vm_swap_kb,
                         .relatives = e->relatives,
                         .is_swap_used = e->is_swap_used};
  uint64_t rss_pages = rollup->bytes[ROLLUP_RSS] / e->page_size;

  r->at_ns = 0;
  if (e->statm.resident_pages > UINT32_MAX || e->vm_swap_kb > UINT32_MAX ||
      rss_pages > UINT32_MAX)
    return false;
  made.off_pages = (uint32_t)distance(e->statm.resident_pages, rss_pages);
  for (int f = 0; f < ROLLUP_FIELDS; f++) {
    if (rollup->bytes[f] / KIB > UINT32_MAX)
      return false;
    made.kb[f] = (uint32_t)(rollup->bytes[f] / KIB);
  }
  *r = made;
  return true;
}

void reading_get(const struct reading *r, struct rollup *ret) {
  ret->known = r->known;
  for (int f = 0; f < ROLLUP_FIELDS; f++)
    ret->bytes[f] = r->kb[f] * KIB;
}

static uint64_t bytes_of(const struct reading *r, enum rollup_field f) {
  return r->kb[f] * KIB;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static uint64_t uss_of(const struct rollup *u) {
  return u->bytes[ROLLUP_PRIVATE_CLEAN] + u->bytes[ROLLUP_PRIVATE_DIRTY];
}

uint64_t rollup_cow_bytes(const struct rollup *rollup) {
  if (!rollup_has(rollup, ROLLUP_PSS_ANON))
    return 0;
  return minus(rollup->bytes[ROLLUP_ANONYMOUS], rollup->bytes[ROLLUP_PSS_ANON]);
}

uint64_t reading_cow_bytes(const struct reading *r) {
  if (!((r->known >> ROLLUP_PSS_ANON) & 1))
    return 0;
  return minus(bytes_of(r, ROLLUP_ANONYMOUS), bytes_of(r, ROLLUP_PSS_ANON));
}

/* What has come (or, negative, gone) since the reading. */
struct change {
  int64_t anon;
  uint64_t returned; /* of that, what came back from swap */
  int64_t shared;    /* of files and shmem */
  int64_t swap;
};

static uint64_t magnitude(int64_t x) { return (uint64_t)(x < 0 ? -x : x); }

static struct change change_since(const struct reading *r,
                                  const struct evidence *e) {
  int64_t page_size = (int64_t)e->page_size;
  int64_t shared = (int64_t)e->statm.shared_pages - r->shared_pages;
  int64_t resident = (int64_t)e->statm.resident_pages - r->resident_pages;
  struct change c = {.anon = (resident - shared) * page_size,
                     .shared = shared * page_size,
                     .swap = ((int64_t)e->vm_swap_kb - r->vm_swap_kb) *
                             (int64_t)KIB};

  if (c.anon > 0 && c.swap < 0)
    c.returned = least((uint64_t)c.anon, magnitude(c.swap));
  return c;
}

/* Anonymous memory that was shared with n - 1 relatives: Pss is short by all of
 * it but an n-th. */
static uint64_t shared_anonymous(const struct reading *r) {
  double n = r->relatives > 1 ? r->relatives : 2;

  return least(amount_from((double)reading_cow_bytes(r) * n / (n - 1)),
               bytes_of(r, ROLLUP_ANONYMOUS));
}

/* What a page of it cost. */
static double cow_cost(const struct reading *r) {
  double shared = (double)shared_anonymous(r);

  return shared > 0 ? 1 - (double)reading_cow_bytes(r) / shared : 0;
}

/* All private memory, but for what may be of files or shmem; or more, if what
 * is shared leaves more. */
static uint64_t private_anonymous(const struct reading *r) {
  uint64_t uss =
      bytes_of(r, ROLLUP_PRIVATE_CLEAN) + bytes_of(r, ROLLUP_PRIVATE_DIRTY);
  uint64_t least_of_it =
      minus(uss, bytes_of(r, ROLLUP_PSS_FILE) + bytes_of(r, ROLLUP_PSS_SHMEM));
  uint64_t rest = bytes_of(r, ROLLUP_ANONYMOUS) - shared_anonymous(r);

  return least(rest > least_of_it ? rest : least_of_it, uss);
}

/* What a page of its swap costs it, by SwapPss: 1 where nobody shares it. */
static double swap_cost(const struct reading *r) {
  if (r->vm_swap_kb == 0 || r->kb[ROLLUP_SWAP_PSS] >= r->vm_swap_kb)
    return 1;
  return (double)r->kb[ROLLUP_SWAP_PSS] / (double)r->vm_swap_kb;
}

/* The part of its swap that is its own, where all relatives share the rest. */
static double private_swap_part(const struct reading *r) {
  double n = r->relatives > 1 ? r->relatives : 2;
  double part = (swap_cost(r) - 1 / n) / (1 - 1 / n);

  return part > 0 ? part : 0;
}

static uint64_t private_swap(const struct reading *r) {
  return amount_from((double)r->vm_swap_kb * private_swap_part(r)) * KIB;
}

/* What a page of its anonymous memory costs it. */
static double anonymous_cost(const struct reading *r) {
  double anonymous = (double)bytes_of(r, ROLLUP_ANONYMOUS);

  return anonymous > 0 ? 1 - (double)reading_cow_bytes(r) / anonymous : 1;
}

uint64_t reading_private_file_bytes(const struct reading *r) {
  return bytes_of(r, ROLLUP_PRIVATE_CLEAN) + bytes_of(r, ROLLUP_PRIVATE_DIRTY) -
         private_anonymous(r);
}

/*
 * Memory shared by copy on write that was broken out of it: faults that brought
 * no memory, as many of them as experience says.
 */
static uint64_t broken_bytes(const struct reading *r, const struct evidence *e,
                             const struct change *c) {
  /* Half of the kernel's counter, which goes round after 16 TiB of them. */
  int32_t faults = (int32_t)(e->minor_faults - r->minor_faults);
  uint64_t faulted = (uint64_t)(faults > 0 ? faults : 0) * e->page_size;
  uint64_t grown = (c->anon > 0 ? (uint64_t)c->anon : 0) +
                   (c->shared > 0 ? (uint64_t)c->shared : 0);

  return least(amount_from((double)minus(faulted, grown) * e->cow_breaks),
               shared_anonymous(r));
}

/* Adds, and stops at zero. */
static void move(struct rollup *u, enum rollup_field f, int64_t by) {
  if (by < 0)
    u->bytes[f] = minus(u->bytes[f], (uint64_t)-by);
  else
    u->bytes[f] += (uint64_t)by;
}

/* What a page of files or shmem cost at the reading: 1 where nobody shared. */
static double shared_ratio(const struct reading *r, uint64_t page_size) {
  double shared = (double)r->shared_pages * (double)page_size;
  double pss =
      (double)(bytes_of(r, ROLLUP_PSS_FILE) + bytes_of(r, ROLLUP_PSS_SHMEM));

  if (!((r->known >> ROLLUP_PSS_FILE) & 1)) /* before 5.3 */
    pss = (double)minus(bytes_of(r, ROLLUP_PSS), bytes_of(r, ROLLUP_ANONYMOUS));
  if (shared <= 0)
    return 1;
  return pss < shared ? pss / shared : 1;
}

static double relatives_factor(const struct reading *r,
                               const struct evidence *e) {
  if (r->relatives == 0 || e->relatives == 0)
    return 1;
  return (double)r->relatives / (double)e->relatives;
}

static void scale_above(struct rollup *u, enum rollup_field f, uint64_t base,
                        double factor) {
  uint64_t kept = least(u->bytes[f], base);

  u->bytes[f] = kept + amount_from((double)(u->bytes[f] - kept) * factor);
}

/* Private memory at the reading, by kind. */
struct own {
  uint64_t anon, file, shmem;
};

static struct own private_parts(const struct reading *r) {
  uint64_t uss =
      bytes_of(r, ROLLUP_PRIVATE_CLEAN) + bytes_of(r, ROLLUP_PRIVATE_DIRTY);
  uint64_t anon = private_anonymous(r);
  uint64_t file = least(minus(uss, anon), bytes_of(r, ROLLUP_PSS_FILE));

  return (struct own){
      .anon = anon, .file = file, .shmem = minus(uss, anon + file)};
}

/* With more relatives a shared page costs each of them less; and so it does,
 * for what the set is known to move, by how often that is mapped. What is
 * private stays as it is. */
static void scale_shared_part(const struct reading *r, const struct evidence *e,
                              struct rollup *u) {
  struct own own = private_parts(r);
  double factor = relatives_factor(r, e);

  scale_above(u, ROLLUP_PSS_DIRTY, u->bytes[ROLLUP_PRIVATE_DIRTY], factor);
  scale_above(u, ROLLUP_SWAP_PSS, private_swap(r), factor);
  if (!rollup_has(u, ROLLUP_PSS_ANON)) {
    scale_above(u, ROLLUP_PSS, uss_of(u), factor);
    return;
  }
  scale_above(u, ROLLUP_PSS_ANON, own.anon, factor);
  scale_above(u, ROLLUP_PSS_FILE, own.file,
              e->is_of_shmem ? factor : e->shared_cost);
  scale_above(u, ROLLUP_PSS_SHMEM, own.shmem,
              e->is_of_shmem ? e->shared_cost : factor);
  u->bytes[ROLLUP_PSS] = u->bytes[ROLLUP_PSS_ANON] + u->bytes[ROLLUP_PSS_FILE] +
                         u->bytes[ROLLUP_PSS_SHMEM];
}

/* Anonymous memory came or went: private, and dirty. What goes beyond what was
 * private was shared, and cost its part only. */
static void move_anonymous(const struct reading *r, struct rollup *u,
                           int64_t by) {
  uint64_t private_most = private_anonymous(r);
  int64_t private_by =
      by < 0 && (uint64_t)-by > private_most ? -(int64_t)private_most : by;
  int64_t pss_by =
      private_by + amount_change_from((double)(by - private_by) * cow_cost(r));
  uint64_t from_clean = 0;

  if (private_by < 0)
    from_clean = minus((uint64_t)-private_by, u->bytes[ROLLUP_PRIVATE_DIRTY]);
  move(u, ROLLUP_PRIVATE_DIRTY, private_by);
  move(u, ROLLUP_PRIVATE_CLEAN, -(int64_t)from_clean);
  move(u, ROLLUP_PSS, pss_by);
  move(u, ROLLUP_PSS_ANON, pss_by);
  move(u, ROLLUP_PSS_DIRTY, pss_by);
  move(u, ROLLUP_ANONYMOUS, by);
  move(u, ROLLUP_REFERENCED, by);
  move(u, ROLLUP_RSS, by);
}

/*
 * What comes back from swap was shared there as SwapPss says. If all relatives
 * get it back (swapoff) it costs as much as it did, if only this process asked
 * for it, all: so it is taken to be half way. Nothing is called its own that
 * may be shared.
 */
static double returned_cost(const struct reading *r) {
  return (1 + swap_cost(r)) / 2;
}

static void move_returned(const struct reading *r, struct rollup *u,
                          uint64_t bytes) {
  int64_t pss_by = amount_change_from((double)bytes * returned_cost(r));
  uint64_t own =
      least(amount_from((double)bytes * private_swap_part(r)), bytes);

  move(u, ROLLUP_PRIVATE_DIRTY, (int64_t)own);
  move(u, ROLLUP_SHARED_DIRTY, (int64_t)(bytes - own));
  move(u, ROLLUP_PSS, pss_by);
  move(u, ROLLUP_PSS_ANON, pss_by);
  move(u, ROLLUP_PSS_DIRTY, pss_by);
  move(u, ROLLUP_ANONYMOUS, (int64_t)bytes);
  move(u, ROLLUP_REFERENCED, (int64_t)bytes);
  move(u, ROLLUP_RSS, (int64_t)bytes);
}

/* What goes out is shared as the anonymous memory was, what comes back as the
 * swap was. */
static void move_swap(const struct reading *r, const struct evidence *e,
                      struct rollup *u, int64_t by) {
  double left = r->vm_swap_kb ? (double)e->vm_swap_kb / r->vm_swap_kb : 1;

  move(u, ROLLUP_SWAP, by);
  if (by < 0)
    u->bytes[ROLLUP_SWAP_PSS] =
        amount_from((double)u->bytes[ROLLUP_SWAP_PSS] * left);
  else
    move(u, ROLLUP_SWAP_PSS,
         amount_change_from((double)by * anonymous_cost(r)));
}

/* Nothing is swapped out any more, not even shmem, of which VmSwap does not
 * tell. (A meminfo that never knew of it is of a container.) */
static void empty_swap(const struct reading *r, const struct evidence *e,
                       struct rollup *u) {
  if (r->is_swap_used && !e->is_swap_used && e->vm_swap_kb == 0)
    u->bytes[ROLLUP_SWAP] = u->bytes[ROLLUP_SWAP_PSS] = 0;
}

/* Pages that were shared are copied: what they cost here before was little. */
static void move_broken(struct rollup *u, uint64_t bytes, double shared_cost) {
  int64_t by = (int64_t)bytes;
  int64_t pss_by = amount_change_from((double)bytes * (1 - shared_cost));
  uint64_t from_dirty = least(bytes, u->bytes[ROLLUP_SHARED_DIRTY]);

  move(u, ROLLUP_PRIVATE_DIRTY, by);
  move(u, ROLLUP_SHARED_DIRTY, -(int64_t)from_dirty);
  move(u, ROLLUP_SHARED_CLEAN, -(int64_t)(bytes - from_dirty));
  move(u, ROLLUP_PSS, pss_by);
  move(u, ROLLUP_PSS_ANON, pss_by);
  move(u, ROLLUP_PSS_DIRTY, pss_by);
}

static void move_shared(struct rollup *u, int64_t by, double ratio) {
  int64_t pss_by = amount_change_from((double)by * ratio);
  uint64_t file = u->bytes[ROLLUP_PSS_FILE];
  uint64_t shmem = u->bytes[ROLLUP_PSS_SHMEM];
  bool is_shmem = shmem > file;

  move(u, ROLLUP_PSS, pss_by);
  move(u, is_shmem ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE, pss_by);
  move(u, ROLLUP_REFERENCED, by);
  move(u, ROLLUP_RSS, by);
}

/* Splits `whole` over two fields as they stand to each other. */
static void split(struct rollup *u, enum rollup_field a, enum rollup_field b,
                  uint64_t whole) {
  uint64_t sum = u->bytes[a] + u->bytes[b];
  double part = sum ? (double)u->bytes[a] / (double)sum : 1;

  if (sum == whole)
    return;
  u->bytes[a] = least(amount_from((double)whole * part), whole);
  u->bytes[b] = whole - u->bytes[a];
}

static void cap(struct rollup *u, enum rollup_field f, uint64_t most) {
  u->bytes[f] = least(u->bytes[f], most);
}

/* Makes the parts of Pss add up to it, as far as the kernel has parts. */
static void settle_pss(struct rollup *u) {
  uint64_t pss = u->bytes[ROLLUP_PSS];

  cap(u, ROLLUP_PSS_DIRTY, pss);
  cap(u, ROLLUP_LOCKED, pss);
  if (!rollup_has(u, ROLLUP_PSS_ANON))
    return;
  cap(u, ROLLUP_PSS_ANON, least(pss, u->bytes[ROLLUP_ANONYMOUS]));
  split(u, ROLLUP_PSS_FILE, ROLLUP_PSS_SHMEM, pss - u->bytes[ROLLUP_PSS_ANON]);
}

/* Brings back the relations that the kernel guarantees. uss gives way to Pss
 * and not the other way round, see usage.h. */
static void settle(struct rollup *u) {
  uint64_t rss = u->bytes[ROLLUP_RSS];
  uint64_t uss;

  cap(u, ROLLUP_PSS, rss);
  uss = least(uss_of(u), u->bytes[ROLLUP_PSS]);
  split(u, ROLLUP_PRIVATE_CLEAN, ROLLUP_PRIVATE_DIRTY, uss);
  split(u, ROLLUP_SHARED_CLEAN, ROLLUP_SHARED_DIRTY, rss - uss);
  for (int f = ROLLUP_REFERENCED; f <= ROLLUP_FILE_PMD_MAPPED; f++)
    cap(u, (enum rollup_field)f, rss);
  cap(u, ROLLUP_ANON_HUGE_PAGES, u->bytes[ROLLUP_ANONYMOUS]);
  cap(u, ROLLUP_KSM, u->bytes[ROLLUP_ANONYMOUS]);
  cap(u, ROLLUP_LAZY_FREE, u->bytes[ROLLUP_ANONYMOUS]);
  cap(u, ROLLUP_SWAP_PSS, u->bytes[ROLLUP_SWAP]);
  settle_pss(u);
}

void estimate_rollup(const struct reading *r, const struct evidence *e,
                     struct rollup *ret) {
  struct change c = change_since(r, e);
  uint64_t broken = broken_bytes(r, e, &c);
  bool is_set_the_same = r->relatives == e->relatives &&
                         !(e->shared_cost < 1 || e->shared_cost > 1);

  reading_get(r, ret);
  empty_swap(r, e, ret);
  if (c.anon == 0 && c.shared == 0 && c.swap == 0 && broken == 0 &&
      e->broken_by_relatives == 0 && is_set_the_same)
    return;
  if (!is_set_the_same)
    scale_shared_part(r, e, ret);
  if (c.anon != (int64_t)c.returned)
    move_anonymous(r, ret, c.anon - (int64_t)c.returned);
  if (c.returned)
    move_returned(r, ret, c.returned);
  if (c.shared)
    move_shared(ret, c.shared, shared_ratio(r, e->page_size) * e->shared_cost);
  if (broken)
    move_broken(ret, broken, cow_cost(r));
  move(ret, ROLLUP_PSS, (int64_t)e->broken_by_relatives);
  move(ret, ROLLUP_PSS_ANON, (int64_t)e->broken_by_relatives);
  if (c.swap)
    move_swap(r, e, ret, c.swap);
  settle(ret);
}

uint64_t estimate_shared_pss(const struct reading *r,
                             const struct rollup *estimate, bool is_of_shmem) {
  struct own own = private_parts(r);

  return is_of_shmem ? minus(estimate->bytes[ROLLUP_PSS_SHMEM], own.shmem)
                     : minus(estimate->bytes[ROLLUP_PSS_FILE], own.file);
}

/* Files and shmem that came or went cost anything from nothing to all. */
static double doubt_of_own(const struct reading *r, const struct evidence *e,
                           const struct change *c) {
  double ratio = shared_ratio(r, e->page_size);

  return (double)magnitude(c->shared) * (ratio > 0.5 ? ratio : 1 - ratio);
}

/* And so can, by what others did, those that stayed. */
static double doubt_by_others(const struct reading *r,
                              const struct evidence *e) {
  uint64_t uss =
      bytes_of(r, ROLLUP_PRIVATE_CLEAN) + bytes_of(r, ROLLUP_PRIVATE_DIRTY);
  uint64_t pss =
      bytes_of(r, e->is_of_shmem ? ROLLUP_PSS_SHMEM : ROLLUP_PSS_FILE);

  if (!((r->known >> ROLLUP_PSS_FILE) & 1)) /* before 5.3 */
    pss = minus(bytes_of(r, ROLLUP_PSS), uss);
  return (double)pss * e->shared_moved;
}

/* Of both, as much as experience says; but who has changed a lot itself is not
 * like the others any more. */
static double doubt_of_shared(const struct reading *r, const struct evidence *e,
                              const struct change *c) {
  double before = (double)r->shared_pages;
  double now = (double)e->statm.shared_pages;
  double changed = c->shared == 0 ? 0
                   : now > before ? 1 - before / now
                                  : 1 - now / before;

  return doubt_of_own(r, e, c) *
             (changed > e->shared_doubt ? changed : e->shared_doubt) +
         doubt_by_others(r, e) * e->shared_doubt;
}

uint64_t estimate_shared_doubt(const struct reading *r,
                               const struct evidence *e) {
  struct change c = change_since(r, e);

  return amount_from(doubt_of_own(r, e, &c) + doubt_by_others(r, e));
}

/* As it was not to be seen for sure what the faults were, a part of it. */
static double doubt_of_cow(const struct reading *r, const struct evidence *e,
                           const struct change *c) {
  double doubt =
      ((double)broken_bytes(r, e, c) + (double)e->broken_by_relatives) *
      e->cow_doubt;

  doubt += (double)c->returned * (1 - returned_cost(r));
  if (c->anon < 0 && r->kb[ROLLUP_ANONYMOUS] > 0)
    /* What went was shared as likely as any other of it. */
    doubt += (double)-c->anon * (double)reading_cow_bytes(r) /
             (double)bytes_of(r, ROLLUP_ANONYMOUS);
  return doubt;
}

/* Relatives that came share all anonymous memory at first, and statm is silent
 * about it; with those that went it is the other way round. */
double estimate_relatives_moved(const struct reading *r,
                                const struct evidence *e) {
  uint32_t most = r->relatives > e->relatives ? r->relatives : e->relatives;
  double now = most ? (double)distance(r->relatives, e->relatives) / most : 0;

  return now > e->relatives_moved ? now : e->relatives_moved;
}

static double doubt_of_relatives(const struct reading *r,
                                 const struct evidence *e) {
  return estimate_relatives_moved(r, e) * (double)bytes_of(r, ROLLUP_ANONYMOUS);
}

uint64_t estimate_relatives_doubt(const struct reading *r,
                                  const struct evidence *e) {
  return amount_from(doubt_of_relatives(r, e));
}

static double doubt_of_age(const struct reading *r, const struct evidence *e) {
  double seconds = (double)(e->now_ns - r->at_ns) / 1e9;
  uint64_t shared =
      bytes_of(r, ROLLUP_SHARED_CLEAN) + bytes_of(r, ROLLUP_SHARED_DIRTY);
  uint64_t pss =
      minus(bytes_of(r, ROLLUP_PSS), bytes_of(r, ROLLUP_PRIVATE_CLEAN) +
                                         bytes_of(r, ROLLUP_PRIVATE_DIRTY));
  double doubt = (double)pss * DRIFT_PER_SECOND * seconds;

  return doubt < (double)shared ? doubt : (double)shared;
}

uint64_t estimate_broken(const struct reading *r, const struct evidence *e) {
  struct change c = change_since(r, e);

  return broken_bytes(r, e, &c);
}

/* What was not merged then cannot be taken apart; before 6.7 the kernel does
 * not say what was. */
static uint64_t doubt_of_ksm(const struct reading *r,
                             const struct evidence *e) {
  bool is_told = (r->known >> ROLLUP_KSM) & 1;

  if (e->is_ksm_merged)
    return bytes_of(r, ROLLUP_ANONYMOUS);
  if (!e->is_ksm_split)
    return 0;
  return bytes_of(r, is_told ? ROLLUP_KSM : ROLLUP_ANONYMOUS);
}

uint64_t estimate_doubt(const struct reading *r, const struct evidence *e) {
  struct change c = change_since(r, e);
  double doubt = doubt_of_shared(r, e, &c) + doubt_of_cow(r, e, &c) +
                 doubt_of_relatives(r, e) * e->relatives_doubt +
                 doubt_of_age(r, e);
  double most;

  doubt += (double)doubt_of_ksm(r, e);
  /* It cannot be further off than by all there is. */
  most = (double)(e->statm.resident_pages * e->page_size);
  return amount_from(doubt < most ? doubt : most);
}
