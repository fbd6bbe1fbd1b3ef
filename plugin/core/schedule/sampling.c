/* SPDX-License-Identifier: MIT */
#include "schedule/sampling.h"

#include <math.h>

#include "base/arith.h"
#include "estimate/estimator.h"
#include "match/group.h"
#include "member/member.h"
#include "sample/page_layout.h"
#include "sample/page_sample.h"

/* How many pages are sampled: of all processes of a group together, and of each
 * at least and at most. MANY times as many without an estimate. */
#define PAGES_OF_GROUP 1000
#define PAGES_LEAST 100
#define PAGES_MOST 500
#define MANY 4

/* The share of a CPU for the samples of a process, and of a group. */
#define PART_OF_PROCESS 0.0012
#define PART_OF_GROUP 0.004

/* Before the first sample. */
#define PAGE_NS_AT_FIRST 2500.0
#define PAGE_NS_RATE 0.1

/* Mappings are read again if the size has changed by 1 / LAYOUT_SIZE_PART of
 * the resident memory, if resident memory has grown by 1 /
 * LAYOUT_RESIDENT_PART, or after LAYOUT_AGE_NS; but they take at most a
 * thousandth of a CPU. */
#define LAYOUT_SIZE_PART 256
#define LAYOUT_RESIDENT_PART 64
#define LAYOUT_AGE_NS (60 * NS_PER_S)
#define LAYOUT_TIMES 1000

bool sampling_prepare(const struct sampler *sampler, struct process *p) {
  return member_begin_sampling(p->member) == 0 &&
         !back_off_is_on(&p->member->sampling->refused, sampler->cycle->now_ns);
}

/* --- the next sample --- */

static uint64_t giants_in(const struct group_track *g) {
  return max(g->giants, g->giants_before);
}

void sampling_allow(struct group_track *g, uint64_t interval_ns) {
  double part = fmin(PART_OF_PROCESS * (double)giants_in(g), PART_OF_GROUP);

  if (g->sampling_ns > 0)
    g->sampling_ns = 0;
  g->sampling_ns += (int64_t)(part * (double)interval_ns);
}

static uint64_t giants_of(const struct process *p) {
  uint64_t most = 1;

  for (size_t i = 0; i < p->n_groups; i++)
    most = max(most, giants_in(p->groups[i]->track));
  return most;
}

static uint32_t pages_wanted(const struct process *p) {
  uint64_t pages =
      min(max(PAGES_OF_GROUP / giants_of(p), PAGES_LEAST), PAGES_MOST);

  return (uint32_t)(track_has_baseline(&p->member->track) ? pages
                                                          : MANY * pages);
}

/* A little memory comes and goes with each thread. */
static bool has_moved(const struct process *p) {
  const struct sampling *s = p->member->sampling;
  uint64_t resident = p->statm.resident_pages;

  return distance(p->statm.size_pages, s->layout_size_pages) >
             resident / LAYOUT_SIZE_PART ||
         minus(resident, s->layout_resident_pages) >
             resident / LAYOUT_RESIDENT_PART;
}

static bool is_layout_stale(const struct sampler *sampler,
                            const struct process *p) {
  const struct sampling *s = p->member->sampling;
  uint64_t age_ns = sampler->cycle->now_ns - s->layout_at_ns;

  return (has_moved(p) || age_ns >= LAYOUT_AGE_NS) &&
         age_ns >= LAYOUT_TIMES * s->layout_ns;
}

uint64_t sampling_time_ns(const struct sampler *sampler,
                          const struct process *p) {
  double page_ns = sampler->page_ns > 0 ? sampler->page_ns : PAGE_NS_AT_FIRST;

  return amount_from(page_ns * pages_wanted(p)) +
         (is_layout_stale(sampler, p) ? p->member->sampling->layout_ns : 0);
}

struct read_job sampling_job(const struct sampler *sampler, struct process *p) {
  struct sampling *s = p->member->sampling;

  if (is_layout_stale(sampler, p)) {
    page_layout_drop(s->layout);
    s->layout = NULL;
  }
  return (struct read_job){
      .process = p,
      .kind = READ_SAMPLE,
      .request = {.pages_wanted = pages_wanted(p),
                  .layout = s->layout,
                  .seed = sampler->cycle->now_ns ^ (uint64_t)p->pid << 40}};
}

/* --- its result --- */

/* The data from which amounts are made of a sample. */
struct measure {
  const struct page_sample *sample;
  double page_size;
  double bytes[PAGE_KINDS], bytes_error[PAGE_KINDS];
  struct page_sums sums; /* without pages */
};

/*
 * Where statm is not exact it can lack pages: up to Linux 6.1 those of the last
 * 64 faults of each thread, and a fault maps up to 16 pages of a file. What the
 * sample has found beyond chance is resident, unless it was freed meanwhile, or
 * is of a hugetlbfs that was not recognised: so `most` pages are added.
 */
static void add_uncounted(struct measure *m, uint64_t most) {
  const struct page_sample *s = m->sample;
  double lacking[PAGE_KINDS], all = 0, uncounted = -s->chance, part;

  for (unsigned kind = 0; kind < PAGE_KINDS; kind++) {
    double more = s->present[kind] - m->bytes[kind] / m->page_size;

    lacking[kind] = fmax(more, 0);
    all += lacking[kind];
    uncounted += more;
  }
  uncounted = fmin(uncounted, (double)most);
  for (unsigned kind = 0; uncounted > 0 && kind < PAGE_KINDS; kind++) {
    part = lacking[kind] / all;
    m->bytes[kind] += part * uncounted * m->page_size;
    m->bytes_error[kind] = part * s->chance * m->page_size;
  }
}

static struct measure measure_begin(const struct sampler *sampler,
                                    const struct process *p,
                                    const struct page_sample *sample) {
  const struct statm_sample *statm = &sample->statm;
  double page_size = (double)sampler->cycle->page_size;
  const struct track *t = &p->member->track;
  uint64_t relatives = fork_family_size(t);
  struct measure m = {
      .sample = sample,
      .page_size = page_size,
      .bytes = {[PAGE_ANON] =
                    (double)(statm->resident_pages - statm->shared_pages) *
                    page_size,
                [PAGE_FILE] = (double)statm->shared_pages * page_size},
      .sums = {.sharers = sample->has_mapcounts ? 0 : (double)max(relatives, 2),
               .alike = (double)min(relatives, giants_of(p))}};

  /* Without mapcounts zero pages seem to be resident. */
  if (sample->has_mapcounts && estimator_statm_bound(sampler->cycle, t) > 0)
    add_uncounted(
        &m, precision_expected(&sampler->cycle->precision, t->now.threads));
  return m;
}

static struct page_sums sums_of(const struct measure *m,
                                const struct page_tally *t) {
  struct page_sums sums = m->sums;

  sums.found = *t;
  return sums;
}

static void add_tally(struct page_tally *to, const struct page_tally *t) {
  to->pages += t->pages;
  to->exclusive += t->exclusive;
  to->unsure += t->unsure;
  to->share += t->share;
  to->share_squared += t->share_squared;
}

/* The counted pages outside of shmem are files, the rest shmem. Without a
 * census none is counted, and the rest is both: all pages had the same chance.
 */
static void measure_parts(const struct measure *m, struct sampled *ret) {
  const struct page_sample *sample = m->sample;
  const struct page_count *census = sample->census;
  struct page_sums anon = sums_of(m, &sample->kinds[PAGE_ANON]);
  struct page_sums own = sums_of(m, &sample->kinds[PAGE_FILE]);
  struct page_sums rest = sums_of(m, &sample->shmem);
  double own_anon =
      fmin(census[PAGE_ANON].exclusive * m->page_size, m->bytes[PAGE_ANON]);
  double files =
      fmin(census[PAGE_FILE].pages * m->page_size, m->bytes[PAGE_FILE]);
  double own_files = fmin(census[PAGE_FILE].exclusive * m->page_size, files);
  double without_rest;

  if (!sample->has_census)
    add_tally(&rest.found, &own.found);
  anon.are_shared = own.are_shared = sample->has_census;
  anon.bytes_error = m->bytes_error[PAGE_ANON];
  rest.bytes_error = m->bytes_error[PAGE_FILE];
  sampled_add_exclusive(ret, PAGE_ANON, own_anon);
  sampled_add_exclusive(ret, PAGE_FILE, own_files);
  sampled_add(ret, PAGE_ANON, &anon, m->bytes[PAGE_ANON] - own_anon);
  sampled_add(ret, PAGE_FILE, &own, files - own_files);
  without_rest = ret->pss[PAGE_FILE];
  sampled_add(ret, PAGE_FILE, &rest, m->bytes[PAGE_FILE] - files);
  if (sample->has_census && ret->pss[PAGE_FILE] > 0)
    ret->shmem_part = 1 - without_rest / ret->pss[PAGE_FILE];
  else if (rest.found.share > 0)
    ret->shmem_part = sample->shmem.share / rest.found.share;
}

static void measure(const struct sampler *sampler, const struct process *p,
                    const struct page_sample *sample, struct sampled *ret) {
  struct measure measure = measure_begin(sampler, p, sample);
  uint32_t swap_kb = p->member->track.now.vm_swap_kb;

  *ret = (struct sampled){.swap = 0};
  measure_parts(&measure, ret);
  sampled_bound_unseen(ret, sample->unknown);
  if (!sampler->cycle->is_swap_used)
    return;
  member_read_swap_kb(sampler->cycle->procfs, p, &swap_kb);
  ret->swap = swap_kb * 1024.0;
}

static void keep_layout(const struct sampler *sampler, const struct process *p,
                        const struct page_sample *sample) {
  struct sampling *s = p->member->sampling;

  page_layout_drop(s->layout);
  s->layout = sample->layout;
  if (sample->layout_ns == 0)
    return;
  s->layout_at_ns = sampler->cycle->now_ns;
  s->layout_ns = sample->layout_ns;
  s->layout_size_pages = p->statm.size_pages;
  s->layout_resident_pages = p->statm.resident_pages;
}

static void refine_read_time(const struct sampler *sampler, struct process *p,
                             const struct policy *policy,
                             const struct page_sample *sample) {
  struct walk walk;

  if (sample->walk_page_ns <= 0)
    return;
  walk = walk_guess(sampler->cycle, p);
  walk.ns = amount_from((double)walk.resident * sample->walk_page_ns);
  walk.huge = amount_from((double)walk.resident * sample->huge);
  read_time_refine(&p->member->read_time, walk, policy, sampler->cycle->now_ns);
}

/* Charges the difference to the prediction, which was charged already. */
static void charge_rest(const struct sampler *sampler, const struct process *p,
                        uint64_t work_ns) {
  int64_t rest_ns = (int64_t)(work_ns - sampling_time_ns(sampler, p));

  for (size_t i = 0; i < p->n_groups; i++)
    p->groups[i]->track->sampling_ns -= rest_ns;
}

static void learn_cost(struct sampler *sampler, const struct read_job *job) {
  double page_ns = ((double)job->work_ns - (double)job->sample.layout_ns) /
                   job->request.pages_wanted;

  /* Limited, because the thread may have been interrupted. */
  if (sampler->page_ns > 0)
    page_ns =
        sampler->page_ns +
        (fmin(page_ns, 2 * sampler->page_ns) - sampler->page_ns) * PAGE_NS_RATE;
  sampler->page_ns = page_ns;
}

void sampling_take(struct sampler *sampler, struct process *p,
                   const struct read_job *job) {
  const struct page_sample *sample = &job->sample;
  struct sampling *s = p->member->sampling;
  struct sampled sampled;
  struct policy policy;

  back_off_forgive(&s->refused);
  policy = member_policy(p); /* by which it may be sampled from now on */
  charge_rest(sampler, p, job->work_ns);
  learn_cost(sampler, job);
  keep_layout(sampler, p, sample);
  refine_read_time(sampler, p, &policy, sample);
  measure(sampler, p, sample, &sampled);
  s->pages = sample->pages;
  estimator_sample(sampler->cycle, &p->member->track, &sampled,
                   amount_narrow(sample->statm.resident_pages),
                   amount_narrow(sample->statm.shared_pages));
  diag_note(sampler->diags,
            sample->has_mapcounts ? DIAG_SAMPLED : DIAG_MAPCOUNT_DENIED, p, 0,
            "pagemap");
}

void sampling_refuse(const struct sampler *sampler, struct process *p) {
  back_off_refuse(&p->member->sampling->refused, sampler->cycle->now_ns);
}
