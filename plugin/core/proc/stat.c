#include "proc/stat.h"

#include <errno.h>
#include <string.h>

static bool parse_comm(struct cursor *s, struct span *ret) {
  const char *close;

  if (!parse_word(s, " ("))
    return false;
  close = memrchr(s->at, ')', (size_t)(s->end - s->at));
  if (!close)
    return false;
  *ret = (struct span){.text = s->at, .len = (size_t)(close - s->at)};
  s->at = close + 1;
  return true;
}

static bool parse_state(struct cursor *s, char *ret) {
  if (!parse_char(s, ' ') || cursor_is_done(s))
    return false;
  *ret = *s->at++;
  return (*ret >= 'A' && *ret <= 'Z') || (*ret >= 'a' && *ret <= 'z');
}

static bool parse_next_u32(struct cursor *s, uint32_t *ret) {
  return parse_char(s, ' ') && parse_u32(s, ret);
}

static bool parse_next_u64(struct cursor *s, uint64_t *ret) {
  struct cursor ahead = *s;

  if (!parse_char(&ahead, ' ') || !parse_u64(&ahead, ret))
    return false;
  *s = ahead;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Skips unused fields. Some can be negative: tpgid, nice, the session of a
 * zombie. They are two thirds of the text, so this neither computes values nor
 * calls parse_char() per field. */
static bool skip_fields(struct cursor *s, int n) {
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

/* Parses field 23 to the end of the line. Missing fields (arg_start came with
 * 3.5) stay 0. */
static bool parse_addresses(struct cursor *s, struct stat_sample *sample) {
  if (skip_fields(s, 3) && parse_next_u64(s, &sample->start_code) &&
      skip_fields(s, 1) && parse_next_u64(s, &sample->start_stack) &&
      skip_fields(s, 19) && parse_next_u64(s, &sample->arg_start))
    while (skip_fields(s, 1))
      ;
  return parse_char(s, '\n') && cursor_is_done(s);
}

/*
 * 3519 (cat) R 3510 3510 2607 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 83042 …
 *
 * pid, comm, state and ppid are fields 1 to 4; flags is 9, minflt 10,
 * num_threads 20, starttime 22, startcode 26, startstack 28, arg_start 48. The
 * newline at the end is required, because a number that was cut short would be
 * another number.
 */
int stat_parse(const char *text, size_t len, struct stat_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  struct stat_sample sample = {0};

  if (!parse_u32(&s, &sample.pid) || !parse_comm(&s, &sample.comm) ||
      !parse_state(&s, &sample.state) || !parse_next_u32(&s, &sample.ppid) ||
      !skip_fields(&s, 4) || !parse_next_u64(&s, &sample.flags) ||
      !parse_next_u64(&s, &sample.minor_faults) || !skip_fields(&s, 9) ||
      !parse_next_u32(&s, &sample.threads) || !skip_fields(&s, 1) ||
      !parse_next_u64(&s, &sample.starttime_ticks) ||
      !parse_addresses(&s, &sample))
    return -EBADMSG;
  *ret = sample;
  return 0;
}
