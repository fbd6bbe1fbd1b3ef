#include <smaps/stat.h>

#include <errno.h>
#include <string.h>

#define PF_KTHREAD UINT64_C(0x00200000) /* linux/sched.h, since 2.6.27 */

static bool take_comm(struct scan *s, struct span *ret) {
  const char *close;

  if (!scan_word(s, " ("))
    return false;
  close = memrchr(s->at, ')', (size_t)(s->end - s->at));
  if (!close)
    return false;
  *ret = (struct span){.text = s->at, .len = (size_t)(close - s->at)};
  s->at = close + 1;
  return true;
}

static bool take_state(struct scan *s, char *ret) {
  if (!scan_char(s, ' ') || scan_is_done(s))
    return false;
  *ret = *s->at++;
  return (*ret >= 'A' && *ret <= 'Z') || (*ret >= 'a' && *ret <= 'z');
}

static bool take_u32(struct scan *s, uint32_t *ret) {
  return scan_char(s, ' ') && scan_u32(s, ret);
}

static bool take_u64(struct scan *s, uint64_t *ret) {
  struct scan ahead = *s;

  if (!scan_char(&ahead, ' ') || !scan_u64(&ahead, ret))
    return false;
  *s = ahead;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Skips fields we do not use. Some can be negative: tpgid, nice, the session of
 * a zombie. They are two thirds of the text, so we do not ask for their values
 * nor call scan_char() for each. */
static bool skip_fields(struct scan *s, int n) {
  for (; n > 0; n--) {
    const char *at = s->at, *digits;

    if (at == s->end || *at++ != ' ')
      return false;
    if (at < s->end && *at == '-')
      at++;
    digits = at;
    while (at < s->end && is_digit(*at))
      at++;
    if (at == digits)
      return false;
    s->at = at;
  }
  return true;
}

/* Fields 23 to the end of the line. What is cut off the end (arg_start came
 * with 3.5) stays 0. */
static bool take_addresses(struct scan *s, struct stat_sample *sample) {
  if (skip_fields(s, 3) && take_u64(s, &sample->start_code) &&
      skip_fields(s, 1) && take_u64(s, &sample->start_stack) &&
      skip_fields(s, 19) && take_u64(s, &sample->arg_start))
    while (skip_fields(s, 1))
      ;
  return scan_char(s, '\n') && scan_is_done(s);
}

/*
 * 3519 (cat) R 3510 3510 2607 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 83042 …
 *
 * pid, comm, state and ppid are fields 1 to 4; flags is 9, minflt 10,
 * num_threads 20, starttime 22, startcode 26, startstack 28, arg_start 48. The
 * newline behind the last is asked for, because a number that was cut short
 * would be another number.
 */
int stat_parse(const char *text, size_t len, struct stat_sample *ret) {
  struct scan s = scan_begin(text, len);
  struct stat_sample sample = {0};

  if (!scan_u32(&s, &sample.pid) || !take_comm(&s, &sample.comm) ||
      !take_state(&s, &sample.state) || !take_u32(&s, &sample.ppid) ||
      !skip_fields(&s, 4) || !take_u64(&s, &sample.flags) ||
      !take_u64(&s, &sample.minor_faults) || !skip_fields(&s, 9) ||
      !take_u32(&s, &sample.threads) || !skip_fields(&s, 1) ||
      !take_u64(&s, &sample.starttime_ticks) || !take_addresses(&s, &sample))
    return -EBADMSG;
  *ret = sample;
  return 0;
}

bool stat_is_kernel_thread(const struct stat_sample *s) {
  return s->flags & PF_KTHREAD;
}

bool stat_is_dead(const struct stat_sample *s) {
  return s->state == 'Z' || s->state == 'X' || s->state == 'x';
}

/* The kernel prints startcode as 1 for who may not see it, as 0 without mm. */
bool stat_has_addresses(const struct stat_sample *s) {
  return s->start_code > 1;
}
