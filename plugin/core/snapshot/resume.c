#include "snapshot/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arith.h"
#include "member/member.h"

#define VERSION 1
#define KEY "resume"
/* Of a line at most: a path, each byte of it as two digits, or 64 points. */
#define LINE_SIZE 16384

/* A record is written to `to`, or else parsed from `from`: one function has its
 * fields for both. What is bad becomes 0. */
struct codec {
  struct json *to;
  struct cursor from;
  bool is_bad;
};

struct resume {
  uint64_t begun_ns; /* of the first handing over; 0: not yet */
  struct {
    uint64_t version, time_ns, host_kills;
    char boot_id[BOOT_ID_SIZE];
    bool has_host_kills;
  } state;
  struct span *waiting; /* records in `text` */
  size_t n;
  char *text;
};

/* --- fields --- */

/* The end of a word that was parsed. */
static void end_word(struct codec *c, bool is_good) {
  c->is_bad |=
      !is_good || (!cursor_is_done(&c->from) && !parse_char(&c->from, ' '));
}

static void code_number(struct codec *c, uint64_t *x) {
  char digits[21], *at = digits + sizeof(digits);
  uint64_t left = *x;

  if (!c->to) {
    end_word(c, parse_u64(&c->from, x));
    *x = c->is_bad ? 0 : *x;
    return;
  }
  do
    *--at = (char)('0' + left % 10);
  while ((left /= 10) > 0);
  *--at = ' ';
  json_raw(c->to, at, (size_t)(digits + sizeof(digits) - at));
}

/* Each byte as two digits, because it may be any but NUL; after a dash. */
static void code_word(struct codec *c, char *text, size_t size) {
  size_t n = 0;
  char byte[3];

  if (c->to) {
    json_raw(c->to, " -", 2);
    for (; *text; text++)
      json_raw(c->to, byte, (size_t)sprintf(byte, "%02x", *text & 0xff));
    return;
  }
  c->is_bad |= !parse_char(&c->from, '-');
  for (; n + 1 < size && c->from.end - c->from.at >= 2; n++) {
    struct cursor two = cursor_begin(c->from.at, 2);
    uint64_t x;

    if (!parse_hex(&two, &x) || !cursor_is_done(&two) || x == 0)
      break;
    text[n] = (char)x;
    c->from.at += 2;
  }
  end_word(c, true);
  text[c->is_bad ? 0 : n] = '\0';
}

/* A number that is finite, by its bits, so that it comes back exactly. */
static void code_real(struct codec *c, double *x) {
  uint64_t bits;

  memcpy(&bits, x, sizeof(bits));
  code_number(c, &bits);
  memcpy(x, &bits, sizeof(bits));
  c->is_bad |= !isfinite(*x);
}

/* Codes a number of another type; returns it. */
static uint64_t code_small(struct codec *c, uint64_t x, uint64_t most) {
  code_number(c, &x);
  c->is_bad |= x > most;
  return c->is_bad ? 0 : x;
}

static void code_flag(struct codec *c, bool *x) { *x = code_small(c, *x, 1); }

/* --- records --- */

static void code_state(struct codec *c, struct resume *r) {
  code_number(c, &r->state.version);
  code_word(c, r->state.boot_id, BOOT_ID_SIZE);
  code_number(c, &r->state.time_ns);
  code_flag(c, &r->state.has_host_kills);
  code_number(c, &r->state.host_kills);
}

static void code_point(struct codec *c, struct growth_point *p) {
  code_number(c, &p->time_ns);
  code_number(c, &p->bytes);
  code_number(c, &p->added);
}

static void code_range(struct codec *c, struct growth_range *r) {
  code_number(c, &r->low);
  code_number(c, &r->top);
}

static void code_growth(struct codec *c, struct growth *g) {
  code_number(c, &g->window_ns);
  code_point(c, &g->lowest);
  code_number(c, &g->due_ns);
  code_number(c, &g->newest_start);
  code_flag(c, &g->is_judged);
  code_flag(c, &g->is_growing);
  g->against = (unsigned)code_small(c, g->against, UINT_MAX);
  code_real(c, &g->slope);
  code_number(c, &g->since_ns);
  code_range(c, &g->rise);
  code_range(c, &g->lesson);
  code_number(c, &g->pace.begin_ns);
  code_point(c, &g->pace.mark);
  code_real(c, &g->pace.sum);
  code_real(c, &g->pace.n);
  code_real(c, &g->pace.slope);
  code_real(c, &g->pace.before);
  code_number(c, &g->learnt_ns);
  g->n = (size_t)code_small(c, g->n, GROWTH_POINTS);
  for (size_t i = 0; i < g->n; i++)
    code_point(c, &g->points[i]);
}

static void code_kills(struct codec *c, struct cgroup_kills *k) {
  struct memory_cgroup *m = &k->counts;

  m->hierarchy = (enum cgroup_hierarchy)code_small(c, m->hierarchy, CGROUP_V1);
  code_flag(c, &m->has_kills);
  code_flag(c, &m->has_parent_kills);
  code_number(c, &m->kills);
  code_number(c, &m->ino);
  code_number(c, &m->parent_kills);
  code_flag(c, &m->oomd.is_known);
  code_number(c, &m->oomd.ooms);
  code_number(c, &m->oomd.kills);
  code_number(c, &k->span);
  for (size_t i = 0; i < CGROUP_KILLS_SPANS; i++) {
    k->by_span[i] = (uint32_t)code_small(c, k->by_span[i], UINT32_MAX);
    k->oomd_by_span[i] =
        (uint32_t)code_small(c, k->oomd_by_span[i], UINT32_MAX);
  }
}

static void code_cooldown(struct codec *c, struct cooldown *cooldown) {
  struct alarm *a = &cooldown->alarm;

  code_number(c, &cooldown->until_ns);
  a->severity = (enum severity)code_small(c, a->severity, SEVERITY_FAILURE);
  code_word(c, a->group, sizeof(a->group));
  code_word(c, a->type, sizeof(a->type));
  code_word(c, a->type_instance, sizeof(a->type_instance));
}

static void code_alarm(struct codec *c, struct alarm_state *a) {
  const unsigned all = (1U << ALARM_CAUSES) - 1;

  a->causes = (unsigned)code_small(c, a->causes, all);
  a->told = (unsigned)code_small(c, a->told, all);
  a->seen = (unsigned)code_small(c, a->seen, all);
  for (int i = 0; i < ALARM_CAUSES; i++)
    a->runs[i] = (uint8_t)code_small(c, a->runs[i], UINT8_MAX);
  code_flag(c, &a->is_soon);
  code_flag(c, &a->had_members);
  code_flag(c, &a->was_known);
  code_flag(c, &a->has_new_kill);
  a->severity = (enum severity)code_small(c, a->severity, SEVERITY_FAILURE);
  code_number(c, &a->since_ns);
  code_number(c, &a->kill_told_ns);
  code_number(c, &a->kill_ns);
}

/* FNV-1a, of the rule of a group. Members of another rule are others. */
static uint64_t hash_rule(const struct settings *s, const struct group *g) {
  const char *text =
      g->rule < s->n_rules ? s->rules[g->rule].text : s->other.text;
  uint64_t hash = UINT64_C(14695981039346656037);

  for (; text && *text; text++)
    hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

/* --- writing --- */

/* False if there is no room for another line. */
static bool has_room(const struct json *j, size_t begin) {
  return j->len - begin < RESUME_MAX - LINE_SIZE;
}

static struct codec begin_line(struct json *j, const char *kind) {
  json_line(j, kind, strlen(kind));
  return (struct codec){.to = j};
}

static void end_line(struct codec *c) { json_raw(c->to, "\"", 1); }

static void write_state(struct json *j, const struct resume_owners *from) {
  const struct cgroup_watch *w = from->cgroup_watch;
  struct resume r = {.state = {.version = VERSION,
                               .time_ns = from->now_ns,
                               .host_kills = w->host_kills,
                               .has_host_kills = w->has_host_kills}};
  struct codec c = begin_line(j, "state");

  memcpy(r.state.boot_id, from->boot_id, BOOT_ID_SIZE);
  code_state(&c, &r);
  end_line(&c);
}

/* The name of the host is empty. */
static void write_alarm(struct json *j, char name[GROUP_NAME_SIZE],
                        uint64_t rule, struct alarm_state *a) {
  struct codec c;

  if (!a->seen && !a->had_members && !a->was_known)
    return;
  c = begin_line(j, "alarm");
  code_word(&c, name, GROUP_NAME_SIZE);
  code_number(&c, &rule);
  code_alarm(&c, a);
  end_line(&c);
}

/* A fixed group shows the kills of its control group without members, which
 * cannot show where that is. */
static void write_group(struct json *j, const struct resume_owners *from,
                        struct group *g) {
  uint64_t rule = hash_rule(from->settings, g);
  struct codec c = {.to = j};
  struct growth growth;
  char path[PATH_MAX];

  if (g->cgroup && g->is_fixed) {
    c = begin_line(j, "cgroup");
    snprintf(path, sizeof(path), "%s", g->cgroup->path);
    code_word(&c, g->name, sizeof(g->name));
    code_word(&c, path, sizeof(path));
    end_line(&c);
  }
  write_alarm(j, g->name, rule, &g->alarm);
  if (!g->growth || (g->growth->n == 0 && !g->growth->lowest.time_ns))
    return;
  growth = *g->growth;
  c = begin_line(j, "growth");
  code_word(&c, g->name, sizeof(g->name));
  code_number(&c, &rule);
  code_growth(&c, &growth);
  end_line(&c);
}

static void write_kills(struct json *j, size_t begin,
                        const struct cgroup_watch *w) {
  struct cgroup_kills k;
  char path[PATH_MAX];
  size_t cursor = 0;

  while (has_room(j, begin) && cgroup_watch_next_kills(w, &cursor, &k)) {
    struct codec c = begin_line(j, "kills");

    snprintf(path, sizeof(path), "%s", k.path);
    code_word(&c, path, sizeof(path));
    code_kills(&c, &k);
    end_line(&c);
  }
}

static void write_cooldowns(struct json *j, const struct resume_owners *from) {
  for (size_t i = 0; i < min(from->cooldowns->n, COOLDOWNS_MAX); i++) {
    struct cooldown *cooldown = &from->cooldowns->at[i];
    struct codec c;

    if (cooldown->until_ns <= from->now_ns)
      continue;
    c = begin_line(j, "cooldown");
    code_cooldown(&c, cooldown);
    end_line(&c);
  }
}

/* With the time at which it was current, before its kind. */
static void write_waiting(struct json *j, const struct resume *r,
                          struct span line) {
  struct cursor at = cursor_begin(line.text, line.len);
  char time[32];

  snprintf(time, sizeof(time), "at %" PRIu64 " ", r->state.time_ns);
  if (parse_word(&at, "at "))
    *time = '\0';
  json_line(j, time, strlen(time));
  json_raw(j, line.text, line.len);
  json_raw(j, "\"", 1);
}

void resume_write(struct json *j, const struct resume_owners *from,
                  const struct resume *waiting) {
  size_t begin = j->len;

  if (!*from->boot_id || j->len + RESUME_MAX > j->max)
    return;
  json_array(j, KEY);
  write_state(j, from);
  write_alarm(j, (char[GROUP_NAME_SIZE]){""}, 0, from->host_alarm);
  write_cooldowns(j, from);
  write_kills(j, begin, from->cgroup_watch);
  for (size_t i = 0; i < from->groups->n && has_room(j, begin); i++)
    write_group(j, from, from->groups->groups[i]);
  for (size_t i = 0; waiting && i < waiting->n && has_room(j, begin); i++)
    write_waiting(j, waiting, waiting->waiting[i]);
  json_end_array(j);
}

/* --- handing over --- */

/* These take a record. 0, 1 if it has to wait, or -EBADMSG. Without `to` it is
 * only checked. */

static bool is_too_old(const struct resume *r, const struct resume_owners *to,
                       uint64_t most_ns) {
  return to->now_ns - r->state.time_ns > most_ns;
}

/* Growth that this run can judge already is better: the file came late. */
static void adopt_growth(struct group *g, const struct growth *from,
                         uint64_t now_ns) {
  if (g->report->growth_window_ns != from->window_ns ||
      (g->growth && g->growth->is_judged))
    return;
  g->track->growth = *from;
  growth_resume(&g->track->growth, now_ns);
  g->growth = &g->track->growth;
}

static int take_growth(struct codec *c, const struct resume *r,
                       const struct resume_owners *to) {
  struct growth growth = {.n = 0};
  char name[GROUP_NAME_SIZE];
  struct group *g = NULL;
  uint64_t rule;

  code_word(c, name, sizeof(name));
  if (to && (!(g = group_table_find(to->groups, name)) || !g->track ||
             g->usage.processes == 0))
    return 1;
  code_number(c, &rule);
  code_growth(c, &growth);
  if (c->is_bad || !growth_is_sound(&growth, r->state.time_ns))
    return -EBADMSG;
  if (g && rule == hash_rule(to->settings, g) &&
      !is_too_old(r, to, growth.window_ns))
    adopt_growth(g, &growth, to->now_ns);
  return 0;
}

/* An alarm of this run is newer: the file came late. */
static int take_alarm(struct codec *c, const struct resume *r,
                      const struct resume_owners *to) {
  struct alarm_state alarm = {.causes = 0}, *own;
  char name[GROUP_NAME_SIZE];
  struct group *g = NULL;
  uint64_t rule;

  code_word(c, name, sizeof(name));
  code_number(c, &rule);
  code_alarm(c, &alarm);
  if (c->is_bad || (alarm.severity && !alarm.seen) ||
      max(max(alarm.since_ns, alarm.kill_told_ns), alarm.kill_ns) >
          r->state.time_ns)
    return -EBADMSG;
  if (!to || is_too_old(r, to, RESUME_WAIT_NS))
    return 0;
  if (*name && !(g = group_table_find(to->groups, name)))
    return 1;
  own = g ? &g->alarm : to->host_alarm;
  if (!own->seen && (!g || rule == hash_rule(to->settings, g)))
    *own = alarm;
  return 0;
}

static int take_cgroup(struct codec *c, const struct resume *r,
                       const struct resume_owners *to) {
  char name[GROUP_NAME_SIZE], path[PATH_MAX];
  struct group *g = NULL;

  code_word(c, name, sizeof(name));
  code_word(c, path, sizeof(path));
  if (c->is_bad)
    return -EBADMSG;
  if (to && !is_too_old(r, to, CGROUP_KILLS_NS))
    g = group_table_find(to->groups, name);
  if (g)
    cgroup_watch_recall_group(to->cgroup_watch, g, path);
  return 0;
}

static int take_kills(struct codec *c, const struct resume *r,
                      const struct resume_owners *to) {
  struct cgroup_kills k = {.span = 0};
  char path[PATH_MAX];

  code_word(c, path, sizeof(path));
  code_kills(c, &k);
  if (c->is_bad || *path != '/' ||
      k.span > r->state.time_ns / CGROUP_KILLS_SPAN_NS)
    return -EBADMSG;
  k.path = path;
  if (to && !is_too_old(r, to, CGROUP_KILLS_NS))
    cgroup_watch_recall(to->cgroup_watch, &k);
  return 0;
}

/* No value cools down for longer than Cooldown, whatever the file says. */
static int take_cooldown(struct codec *c, const struct resume *r,
                         const struct resume_owners *to) {
  struct cooldown cooldown = {.until_ns = 0};

  (void)r;
  code_cooldown(c, &cooldown);
  if (c->is_bad)
    return -EBADMSG;
  if (!to || cooldown.until_ns <= to->now_ns)
    return 0;
  cooldown.until_ns =
      min(cooldown.until_ns, to->now_ns + to->settings->capture.cooldown_ns);
  to->cooldowns->at[to->cooldowns->n++ % COOLDOWNS_MAX] = cooldown;
  return 0;
}

static int take(struct span line, const struct resume *r,
                const struct resume_owners *to) {
  static const struct {
    const char *kind;
    int (*take)(struct codec *c, const struct resume *r,
                const struct resume_owners *to);
  } kinds[] = {{"growth ", take_growth},
               {"alarm ", take_alarm},
               {"cgroup ", take_cgroup},
               {"kills ", take_kills},
               {"cooldown ", take_cooldown}};
  struct codec c = {.from = cursor_begin(line.text, line.len)};
  uint64_t time_ns;

  if (parse_word(&c.from, "at ")) {
    if (!parse_u64(&c.from, &time_ns) || !parse_char(&c.from, ' ') ||
        time_ns > r->state.time_ns)
      return -EBADMSG;
    if (to && to->now_ns - time_ns > RESUME_WAIT_NS)
      return 0;
  }
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (parse_word(&c.from, kinds[i].kind)) {
      int rc = kinds[i].take(&c, r, to);

      return rc == 0 && !cursor_is_done(&c.from) ? -EBADMSG : rc;
    }
  return -EBADMSG;
}

bool resume_adopt(struct resume *r, const struct resume_owners *to) {
  size_t n = 0;

  if (!r->begun_ns) {
    r->begun_ns = to->now_ns;
    if (strcmp(r->state.boot_id, to->boot_id) != 0 ||
        r->state.time_ns > to->now_ns)
      return false;
    if (r->state.has_host_kills && !is_too_old(r, to, CGROUP_KILLS_NS))
      cgroup_watch_recall_host(to->cgroup_watch, r->state.host_kills);
  }
  for (size_t i = 0; i < r->n; i++)
    if (take(r->waiting[i], r, to) > 0)
      r->waiting[n++] = r->waiting[i];
  r->n = n;
  return n > 0 && to->now_ns - r->begun_ns < RESUME_WAIT_NS;
}

void resume_free(struct resume *r) {
  if (!r)
    return;
  free(r->waiting);
  free(r->text);
  free(r);
}

/* --- reading --- */

/* Takes the marks of an array of JSON off the line. */
static bool strip(struct span *line, bool *ret_is_last) {
  size_t len = line->len;

  *ret_is_last = len > 3 && memcmp(line->text + len - 3, "\"]}", 3) == 0;
  len -= *ret_is_last ? 3 : 2;
  if (line->len < 3 || *line->text != '"' ||
      (!*ret_is_last && memcmp(line->text + len, "\",", 2) != 0))
    return false;
  *line = (struct span){line->text + 1, len - 1};
  return true;
}

/* 1, or 0 if it is of another version. */
static int parse_state(struct resume *r, struct span line) {
  struct codec c = {.from = cursor_begin(line.text, line.len)};

  if (!parse_word(&c.from, "state "))
    return -EBADMSG;
  code_state(&c, r);
  if (r->state.version && r->state.version != VERSION)
    return 0;
  return c.is_bad || !cursor_is_done(&c.from) ? -EBADMSG : 1;
}

/* The same. */
static int parse_lines(struct resume *r, struct cursor s, uint64_t *ret_line) {
  bool is_last = false;
  struct span line;

  for (*ret_line = 2; !is_last && parse_line(&s, &line); ++*ret_line) {
    int rc = strip(&line, &is_last) ? 1 : -EBADMSG;

    if (rc > 0 && *ret_line == 2)
      rc = parse_state(r, line);
    else if (rc > 0)
      rc = take(r->waiting[r->n++] = line, r, NULL) < 0 ? -EBADMSG : 1;
    if (rc <= 0)
      return rc;
  }
  return is_last && cursor_is_done(&s) ? 1 : -EBADMSG;
}

/* The text is the end of a state, and becomes part of r. */
static int parse(struct resume *r, size_t len, uint64_t *ret_line) {
  static const char mark[] = "\"" KEY "\":[\n";
  const char *begin = memmem(r->text, len, mark, strlen(mark));
  size_t lines = 1;

  *ret_line = 1;
  if (r->text[len - 1] != '\n')
    return -EBADMSG;
  if (!begin)
    return 0;
  begin += strlen(mark);
  for (const char *at = begin; at < r->text + len; at++)
    lines += *at == '\n';
  r->waiting = calloc(lines, sizeof(*r->waiting));
  return r->waiting
             ? parse_lines(
                   r, cursor_begin(begin, (size_t)(r->text + len - 1 - begin)),
                   ret_line)
             : -ENOMEM;
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

static int read_end(int fd, size_t size, struct resume *r, uint64_t *ret_line) {
  size_t len = min(size, RESUME_MAX), at = 0;
  ssize_t n = 1;

  *ret_line = 1;
  if (len == 0)
    return -EBADMSG;
  r->text = malloc(len);
  if (!r->text)
    return -ENOMEM;
  for (; at < len && n > 0; at += (size_t)n)
    n = pread(fd, r->text + at, len - at, (off_t)(size - len + at));
  if (n <= 0)
    return n < 0 ? -errno : -EBADMSG;
  return parse(r, len, ret_line);
}

int resume_read(const char *path, struct resume **ret, uint64_t *ret_line) {
  size_t size = 0;
  int fd = open_file(path, &size), rc = fd;
  struct resume *r = NULL;

  if (fd >= 0) {
    r = calloc(1, sizeof(*r));
    rc = r ? read_end(fd, size, r, ret_line) : -ENOMEM;
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
