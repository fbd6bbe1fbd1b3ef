/* SPDX-License-Identifier: MIT */
#include "snapshot/resume.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arith.h"
#include "member/member.h"

/* Raised when a field of the records below becomes another. That one has come
 * or gone, their sizes show mostly. */
#define VERSION 4U
#define SIZES                                                                  \
  (sizeof(struct alarm_record) + sizeof(struct growth_record) +                \
   sizeof(struct cgroup_kills) + sizeof(struct cooldown))
#define KEY "resume"
/* Of a line at most: a path and a record, each byte of it as two digits. */
#define LINE_SIZE 16384
#define HEADER_SIZE (64 + BOOT_ID_SIZE)
/* The last line, with the hash of the others. */
#define END_FORMAT ",\n\"end %016" PRIx64 "\"]}\n"
#define END_LEN (sizeof(",\n\"end \"]}\n") - 1 + 16)

/* --- records --- */

/* rule: hash_rule(). */
struct alarm_record {
  uint64_t rule;
  struct alarm_state alarm;
};

struct growth_record {
  uint64_t rule, time_ns;
  struct growth growth;
};

/* What a line has besides its name. */
union record {
  uint64_t host_kills;
  struct alarm_record alarm;
  struct growth_record growth;
  struct cgroup_kills kills;
  struct cooldown cooldown;
  char path[PATH_MAX];
};

struct resume {
  struct span header;
  uint64_t time_ns;     /* of the state; 0: nothing was handed over yet */
  struct span *waiting; /* lines in `text` */
  size_t n;
  char *text;
};

/* FNV-1a. */
static uint64_t hash_bytes(const char *bytes, size_t len) {
  uint64_t hash = UINT64_C(14695981039346656037);

  for (size_t i = 0; i < len; i++)
    hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

/* Members of another rule are others. */
static uint64_t hash_rule(const struct settings *s, const struct group *g) {
  const char *text =
      g->rule < s->n_rules ? s->rules[g->rule].text : s->other.text;

  return hash_bytes(text, text ? strlen(text) : 0);
}

/* Without the zeros at the end; others are dots, because there are many. */
static void write_bytes(struct json *j, const void *bytes, size_t len) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char *at = bytes;
  char text[2 * PATH_MAX], *to = text;

  assert(len <= PATH_MAX);
  while (len > 0 && at[len - 1] == 0)
    len--;
  for (size_t i = 0; i < len; i++) {
    if (at[i])
      *to++ = digits[at[i] >> 4];
    *to++ = at[i] ? digits[at[i] & 15] : '.';
  }
  json_raw(j, text, (size_t)(to - text));
}

/* Up to a blank or the end; the rest of the bytes stays zero. False if there is
 * no room. */
static bool parse_bytes(struct cursor *s, void *ret, size_t size) {
  unsigned char *to = ret;

  for (size_t n = 0; s->at < s->end && *s->at != ' '; n++) {
    struct cursor two = cursor_begin(s->at, 2);
    uint64_t byte = 0;

    if (n == size)
      return false;
    if (!parse_char(s, '.')) {
      if (s->end - s->at < 2 || !parse_hex(&two, &byte) ||
          !cursor_is_done(&two))
        return false;
      s->at += 2;
    }
    to[n] = (unsigned char)byte;
  }
  return true;
}

/* --- writing --- */

struct output {
  struct json *json;
  size_t begin;
};

/* Nothing if there is no room for another line. */
static void write_record(const struct output *o, const char *kind,
                         const char *name, const void *record, size_t size) {
  struct json *j = o->json;

  if (j->len - o->begin >= RESUME_MAX - LINE_SIZE)
    return;
  json_line(j, kind, strlen(kind));
  json_raw(j, " ", 1);
  write_bytes(j, name, strlen(name));
  json_raw(j, " ", 1);
  write_bytes(j, record, size);
  json_raw(j, "\"", 1);
}

/* The name of the host is empty. */
static void write_alarm(const struct output *o, const char *name, uint64_t rule,
                        const struct alarm_state *a) {
  struct alarm_record r;

  memset(&r, 0, sizeof(r));
  r.rule = rule;
  memcpy(&r.alarm, a, sizeof(*a));
  if (a->seen || a->had_members || a->was_known)
    write_record(o, "alarm", name, &r, sizeof(r));
}

static void write_growth(const struct output *o, const char *name,
                         uint64_t rule, uint64_t now_ns,
                         const struct growth *g) {
  struct growth_record r;

  memset(&r, 0, sizeof(r));
  r.rule = rule;
  r.time_ns = now_ns;
  memcpy(&r.growth, g, sizeof(*g));
  memset(&r.growth.points[g->n], 0,
         (GROWTH_POINTS - g->n) * sizeof(*r.growth.points));
  if (g->n > 0 || g->lowest.time_ns)
    write_record(o, "growth", name, &r, sizeof(r));
}

/* A fixed group shows the kills of its control group without members, which
 * cannot show where that is. */
static void write_group(const struct output *o,
                        const struct resume_owners *from,
                        const struct group *g) {
  uint64_t rule = hash_rule(from->settings, g);

  if (g->cgroup && g->is_fixed)
    write_record(o, "cgroup", g->name, g->cgroup->path,
                 strlen(g->cgroup->path));
  write_alarm(o, g->name, rule, &g->alarm);
  if (g->growth)
    write_growth(o, g->name, rule, from->now_ns, g->growth);
}

static void write_kills(const struct output *o, const struct cgroup_watch *w) {
  struct cgroup_kills k;
  const char *path;
  size_t cursor = 0;

  if (w->has_host_kills)
    write_record(o, "host", "", &w->host_kills, sizeof(w->host_kills));
  while ((path = cgroup_watch_next_kills(w, &cursor, &k)))
    write_record(o, "kills", path, &k, sizeof(k));
}

static void write_cooldowns(const struct output *o,
                            const struct resume_owners *from) {
  for (size_t i = 0; i < min(from->cooldowns->n, COOLDOWNS_MAX); i++) {
    const struct cooldown *c = &from->cooldowns->at[i];

    if (c->until_ns > from->now_ns)
      write_record(o, "cooldown", "", c, sizeof(*c));
  }
}

/* The header up to the time. */
static void format_header(const char *boot_id, char *ret, size_t size) {
  snprintf(ret, size, "version %u.%zu boot %s time ", VERSION, SIZES, boot_id);
}

static void write_header(struct json *j, const struct resume_owners *from) {
  char text[HEADER_SIZE], time[32];

  format_header(from->boot_id, text, sizeof(text));
  snprintf(time, sizeof(time), "%" PRIu64 "\"", from->now_ns);
  json_line(j, text, strlen(text));
  json_raw(j, time, strlen(time));
}

void resume_write(struct json *j, const struct resume_owners *from) {
  struct output o = {.json = j};
  char end[END_LEN + 1];

  if (!*from->boot_id || j->len + RESUME_MAX > j->max)
    return;
  json_array(j, KEY);
  o.begin = j->len;
  write_header(j, from);
  write_alarm(&o, "", 0, from->host_alarm);
  write_cooldowns(&o, from);
  write_kills(&o, from->cgroup_watch);
  for (size_t i = 0; i < from->groups->n; i++)
    write_group(&o, from, from->groups->groups[i]);
  if (j->error)
    return;
  snprintf(end, sizeof(end), END_FORMAT,
           hash_bytes(j->text + o.begin, j->len - o.begin));
  json_raw(j, end, END_LEN - strlen("]}\n"));
  json_end_array(j);
}

/* --- handing over --- */

/* These take a record. False if it has to wait. */

static bool take_host(const char *name, const union record *r,
                      const struct resume_owners *to) {
  (void)name;
  cgroup_watch_recall_host(to->cgroup_watch, r->host_kills);
  return true;
}

/* Growth that this run can judge already is better: the file came late. */
static bool take_growth(const char *name, const union record *r,
                        const struct resume_owners *to) {
  const struct growth *from = &r->growth.growth;
  struct group *g = group_table_find(to->groups, name);

  if (!g || !g->track || g->usage.processes == 0)
    return false;
  if (r->growth.rule != hash_rule(to->settings, g) ||
      g->report->growth_window_ns != from->window_ns ||
      to->now_ns - r->growth.time_ns > from->window_ns ||
      (g->growth && g->growth->is_judged))
    return true;
  g->track->growth = *from;
  growth_resume(&g->track->growth, to->now_ns);
  g->growth = &g->track->growth;
  return true;
}

/* An alarm of this run is newer: the file came late. */
static bool take_alarm(const char *name, const union record *r,
                       const struct resume_owners *to) {
  struct group *g = *name ? group_table_find(to->groups, name) : NULL;
  struct alarm_state *own = g ? &g->alarm : to->host_alarm;

  if (*name && !g)
    return false;
  if (!own->seen && (!g || r->alarm.rule == hash_rule(to->settings, g)))
    *own = r->alarm.alarm;
  return true;
}

static bool take_cgroup(const char *name, const union record *r,
                        const struct resume_owners *to) {
  struct group *g = group_table_find(to->groups, name);

  if (g)
    cgroup_watch_recall_group(to->cgroup_watch, g, r->path);
  return true;
}

static bool take_kills(const char *name, const union record *r,
                       const struct resume_owners *to) {
  cgroup_watch_recall(to->cgroup_watch, name, &r->kills);
  return true;
}

/* No value cools down for longer than Cooldown, which may be another now. */
static bool take_cooldown(const char *name, const union record *r,
                          const struct resume_owners *to) {
  uint64_t most_ns = to->now_ns + to->settings->capture.cooldown_ns;
  struct cooldown *c = &to->cooldowns->at[to->cooldowns->n % COOLDOWNS_MAX];

  (void)name;
  if (r->cooldown.until_ns <= to->now_ns)
    return true;
  *c = r->cooldown;
  c->until_ns = min(c->until_ns, most_ns);
  to->cooldowns->n++;
  return true;
}

/* Parses what follows the kind. */
static bool parse_record(struct cursor *s, char name[PATH_MAX],
                         union record *ret, size_t size) {
  memset(name, 0, PATH_MAX);
  memset(ret, 0, sizeof(*ret));
  return parse_bytes(s, name, PATH_MAX - 1) && parse_char(s, ' ') &&
         parse_bytes(s, ret, size);
}

static bool take(struct span line, const struct resume_owners *to) {
  static const struct {
    const char *kind;
    size_t size;
    bool (*take)(const char *name, const union record *r,
                 const struct resume_owners *to);
  } kinds[] = {{"host ", sizeof(uint64_t), take_host},
               {"growth ", sizeof(struct growth_record), take_growth},
               {"alarm ", sizeof(struct alarm_record), take_alarm},
               {"cgroup ", PATH_MAX - 1, take_cgroup},
               {"kills ", sizeof(struct cgroup_kills), take_kills},
               {"cooldown ", sizeof(struct cooldown), take_cooldown}};
  struct cursor s = cursor_begin(line.text, line.len);
  char name[PATH_MAX];
  union record r;

  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (parse_word(&s, kinds[i].kind))
      return !parse_record(&s, name, &r, kinds[i].size) ||
             kinds[i].take(name, &r, to);
  return true;
}

/* Sets the time. False if the state is of another boot or version. */
static bool begin(struct resume *r, const struct resume_owners *to) {
  struct cursor s = cursor_begin(r->header.text, r->header.len);
  char header[HEADER_SIZE];

  format_header(to->boot_id, header, sizeof(header));
  return parse_word(&s, header) && parse_u64(&s, &r->time_ns) &&
         r->time_ns <= to->now_ns;
}

bool resume_adopt(struct resume *r, const struct resume_owners *to) {
  size_t n = 0;

  if ((!r->time_ns && !begin(r, to)) ||
      to->now_ns - r->time_ns > RESUME_MOST_NS)
    return false;
  for (size_t i = 0; i < r->n; i++)
    if (!take(r->waiting[i], to))
      r->waiting[n++] = r->waiting[i];
  r->n = n;
  return n > 0;
}

void resume_free(struct resume *r) {
  if (!r)
    return;
  free(r->waiting);
  free(r->text);
  free(r);
}

/* --- reading --- */

/* Splits it into lines of JSON, of which it takes the marks off. */
static int split(struct resume *r, const char *begin, const char *end) {
  struct cursor s = cursor_begin(begin, (size_t)(end - begin));
  struct span line;
  size_t n = 0;

  for (const char *at = begin; at < end; at++)
    n += *at == '\n';
  r->waiting = calloc(n + 1, sizeof(*r->waiting));
  if (!r->waiting)
    return -ENOMEM;
  for (; parse_line(&s, &line); r->n++)
    r->waiting[r->n] = (struct span){line.text + 1, minus(line.len, 3)};
  r->header = r->waiting[0];
  return 1;
}

/* The text is the end of a state, and becomes part of r. 0 if it has nothing.
 */
static int parse(struct resume *r, size_t len) {
  static const char mark[] = "\"" KEY "\":[";
  const char *begin = memmem(r->text, len, mark, strlen(mark));
  const char *end = r->text + len - END_LEN;
  char expected[END_LEN + 1];

  if (!begin)
    return r->text[len - 1] == '\n' ? 0 : -EBADMSG;
  begin += strlen(mark);
  if (end <= begin)
    return -EBADMSG;
  snprintf(expected, sizeof(expected), END_FORMAT,
           hash_bytes(begin, (size_t)(end - begin)));
  return memcmp(end, expected, END_LEN) == 0 ? split(r, begin + 1, end + 2)
                                             : -EBADMSG;
}

/* O_NONBLOCK for a FIFO. A symbolic link is refused, because its owner chooses
 * the file. */
static int open_file(const char *path, size_t *ret_size) {
  int fd =
      open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  int rc = 0;
  struct stat st;

  if (fd < 0)
    return errno == ELOOP ? -EPERM : -errno;
  if (fstat(fd, &st) != 0)
    rc = -errno;
  else if (!S_ISREG(st.st_mode) || st.st_mode & (S_IWGRP | S_IWOTH) ||
           (st.st_uid != 0 && st.st_uid != geteuid()))
    rc = -EPERM;
  if (rc == 0) {
    *ret_size = (size_t)st.st_size;
    return fd;
  }
  close(fd);
  return rc;
}

static int read_end(int fd, size_t size, struct resume *r) {
  size_t len = min(size, RESUME_MAX), at = 0;
  ssize_t n = 1;

  if (len == 0)
    return -EBADMSG;
  r->text = calloc(1, len);
  if (!r->text)
    return -ENOMEM;
  for (; at < len && n > 0; at += (size_t)n)
    n = pread(fd, r->text + at, len - at, (off_t)(size - len + at));
  if (n <= 0)
    return n < 0 ? -errno : -EBADMSG;
  return parse(r, len);
}

int resume_read(const char *path, struct resume **ret) {
  size_t size = 0;
  int fd = open_file(path, &size), rc = fd;
  struct resume *r = NULL;

  if (fd >= 0) {
    r = calloc(1, sizeof(*r));
    rc = r ? read_end(fd, size, r) : -ENOMEM;
    close(fd);
  }
  if (rc <= 0) {
    resume_free(r);
    r = NULL;
  }
  if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR)
    return rc;
  *ret = r;
  return 0;
}
