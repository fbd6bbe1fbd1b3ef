/* SPDX-License-Identifier: MIT */
#include "proc/stat.h"

#include <errno.h>
#include <string.h>

#include "base/arith.h"

/* More than the fields up to arg_start, the 48th. */
#define FIELDS 64

/* A longer name, of a kernel thread, is cut. */
static bool parse_comm(struct cursor *s, char ret[STAT_COMM_SIZE]) {
  const char *close;
  size_t len;

  if (!parse_word(s, " ("))
    return false;
  close = memrchr(s->at, ')', (size_t)(s->end - s->at));
  if (!close)
    return false;
  len = (size_t)min((uint64_t)(close - s->at), STAT_COMM_SIZE - 1);
  memcpy(ret, s->at, len);
  ret[len] = '\0';
  s->at = close + 1;
  return true;
}

static bool parse_state(struct cursor *s, char *ret) {
  if (!parse_char(s, ' ') || cursor_is_done(s))
    return false;
  *ret = *s->at++;
  return (*ret >= 'A' && *ret <= 'Z') || (*ret >= 'a' && *ret <= 'z');
}

/* Fields that can be negative are not used: tpgid, nice, the session of a
 * zombie. */
static bool parse_number(struct cursor *s, uint64_t *ret) {
  struct cursor ahead = *s;

  if (!parse_char(&ahead, ' '))
    return false;
  parse_char(&ahead, '-');
  if (!parse_u64(&ahead, ret))
    return false;
  *s = ahead;
  return true;
}

/*
 * 3519 (cat) R 3510 3510 2607 0 -1 4194304 103 0 0 0 0 0 0 0 20 0 1 0 83042 …
 *
 * pid, comm, state and ppid are fields 1 to 4; flags is 9, minflt 10,
 * num_threads 20, starttime 22, startcode 26, startstack 28, arg_start 48
 * (since 3.5). The newline at the end is required, because a number that was
 * cut short would be another number.
 */
int stat_parse(const char *text, size_t len, struct stat_sample *ret) {
  struct cursor s = cursor_begin(text, len);
  struct stat_sample sample = {0};
  uint64_t field[FIELDS] = {0}, number;
  size_t n = 4;

  if (!parse_u64(&s, &number) || !parse_comm(&s, sample.comm) ||
      !parse_state(&s, &sample.state))
    return -EBADMSG;
  for (; parse_number(&s, &number); n++)
    if (n < FIELDS)
      field[n] = number;
  if (n <= 22 || !parse_char(&s, '\n') || !cursor_is_done(&s))
    return -EBADMSG;
  sample.ppid = amount_narrow(field[4]);
  sample.flags = field[9];
  sample.minor_faults = field[10];
  sample.threads = amount_narrow(field[20]);
  sample.starttime_ticks = field[22];
  sample.start_code = field[26];
  sample.start_stack = field[28];
  sample.arg_start = field[48];
  *ret = sample;
  return 0;
}
