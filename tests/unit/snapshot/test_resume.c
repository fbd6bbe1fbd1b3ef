/* SPDX-License-Identifier: MIT */
/* What a state remembers comes back bit by bit, and what is damaged is refused.
 */
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "match/group.h"
#include "member/member.h"
#include "snapshot/resume.h"

#include "proctree.h"

#define BOOT "2d9a5b4e-6a3d-4f0e-8a52-0d5a1c8d7f11"
#define NOW (UINT64_C(100000) * NS)
#define HOUR_NS (UINT64_C(3600) * NS)

/* --- who has it --- */

/* The fixed group "g" of one process, and nothing else, unless a test adds it.
 */
struct made {
  struct proctree tree;
  struct report report;
  struct group_track track;
  struct group group;
  struct group *groups[1];
  struct group_table table;
  struct rule rule;
  struct settings settings;
  struct cgroup_watch watch;
  struct cooldowns cooldowns;
  struct alarm_state host_alarm;
  struct resume_owners owners;
  struct growth growth; /* that is written */
};

static const char boot[BOOT_ID_SIZE] = BOOT;

static void make_all(struct made *m) {
  *m = (struct made){.report = {.growth_window_ns = HOUR_NS},
                     .group = {.name = "g",
                               .is_fixed = true,
                               .usage = {.processes = 1},
                               .report = &m->report,
                               .track = &m->track},
                     .settings = {.rules = &m->rule,
                                  .n_rules = 1,
                                  .capture = {.cooldown_ns = HOUR_NS}}};
  proctree_make(&m->tree);
  m->rule.text = strdup("Comm \"g\"");
  m->groups[0] = &m->group;
  m->table = (struct group_table){.groups = m->groups, .n = 1};
  m->owners = (struct resume_owners){.boot_id = boot,
                                     .now_ns = NOW,
                                     .settings = &m->settings,
                                     .groups = &m->table,
                                     .cgroup_watch = &m->watch,
                                     .cooldowns = &m->cooldowns,
                                     .host_alarm = &m->host_alarm};
}

static void free_all(struct made *m) {
  cgroup_watch_done(&m->watch);
  free(m->rule.text);
  proctree_remove(&m->tree);
}

TEST_OBJECT(struct made, make_all, free_all)
#define MADE_TEST(name) TEST_WITH(name, make, unmake, struct made *m)

static char *write_document(const struct made *m, size_t *ret_len) {
  struct json j = {.max = JSON_MAX};
  char *text;

  json_object(&j, NULL);
  resume_write(&j, &m->owners);
  json_end_object(&j);
  assert_int_equal(json_finish(&j, &text, ret_len), 0);
  text = realloc(text, *ret_len + 1);
  text[*ret_len] = '\0';
  return text;
}

static int read_text(const struct made *m, const char *text, size_t len,
                     struct resume **ret) {
  char path[PATH_MAX];

  proctree_write(&m->tree, "state", text, len);
  snprintf(path, sizeof(path), "%s/state", m->tree.root);
  return resume_read(path, ret);
}

static struct resume *reread(const struct made *m) {
  struct resume *r = NULL;
  size_t len;
  char *text = write_document(m, &len);

  assert_int_equal(read_text(m, text, len, &r), 0);
  assert_non_null(r);
  free(text);
  return r;
}

/* Another run begins that knows nothing. */
static void begin_again(struct made *m) {
  cgroup_watch_done(&m->watch);
  m->watch = (struct cgroup_watch){.procfs = NULL};
  m->cooldowns.n = 0;
  m->group.growth = NULL;
  m->group.cgroup = NULL;
  m->host_alarm = m->group.alarm = (struct alarm_state){.causes = 0};
  memset(&m->track, 0, sizeof(m->track));
}

/* --- each record --- */

/* A history that can be: its times rise, and no number is without meaning. */
static struct growth draw_growth(size_t n) {
  struct growth g;

  growth_init(&g, HOUR_NS);
  for (g.n = 0; g.n < n; g.n++)
    g.points[g.n] = (struct growth_point){.time_ns = NOW - HOUR_NS +
                                                     g.n * 55 * NS + draw(NS),
                                          .bytes = draw(UINT64_C(1) << 62),
                                          .added = draw(1 << 30)};
  g.lowest = (struct growth_point){NOW - draw(NS), draw(1 << 30), 17};
  g.due_ns = NOW + draw(HOUR_NS);
  g.newest_start = draw(UINT64_C(1) << 50);
  g.is_judged = n >= GROWTH_POINTS_LEAST;
  g.is_growing = draw(2);
  g.against = draw_unsigned(3);
  g.slope = (double)draw(UINT64_C(1) << 60) / 7;
  g.since_ns = NOW - draw(HOUR_NS);
  g.rise = (struct growth_range){draw(1000), 1000 + draw(1000)};
  g.lesson = (struct growth_range){draw(10), 10 + draw(1 << 30)};
  g.pace = (struct growth_pace){.begin_ns = NOW - HOUR_NS,
                                .mark = {NOW - draw(NS), draw(NS), draw(9)},
                                .sum = (double)draw(1 << 30) / 3,
                                .n = (double)draw(1000),
                                .slope = -(double)draw(1 << 30) / 3,
                                .before = (double)draw(1 << 30) / 11};
  g.learnt_ns = NOW - draw(HOUR_NS);
  return g;
}

/* Equal bit by bit, but for what no state has. */
static void assert_growth(const struct growth *expected,
                          const struct growth *found) {
  struct growth a = *expected, b = *found;

  a.is_at_lowest = b.is_at_lowest = false;
  a.settled_ns = b.settled_ns = 0;
  a.bytes_per_second = b.bytes_per_second = 0;
  a.room_bytes = b.room_bytes = 0;
  for (size_t i = a.n; i < GROWTH_POINTS; i++)
    a.points[i] = b.points[i] = (struct growth_point){0};
  assert_memory_equal(&a.points, &b.points, sizeof(a.points));
  assert_int_equal(a.n, b.n);
  assert_memory_equal(&a.lowest, &b.lowest, sizeof(a.lowest));
  assert_memory_equal(&a.rise, &b.rise, sizeof(a.rise));
  assert_memory_equal(&a.lesson, &b.lesson, sizeof(a.lesson));
  assert_memory_equal(&a.pace, &b.pace, sizeof(a.pace));
  assert_memory_equal(&a.slope, &b.slope, sizeof(a.slope));
  assert_true(a.window_ns == b.window_ns && a.due_ns == b.due_ns &&
              a.newest_start == b.newest_start && a.is_judged == b.is_judged &&
              a.is_growing == b.is_growing && a.against == b.against &&
              a.learnt_ns == b.learnt_ns && a.since_ns == b.since_ns);
}

/* The lengths are all that there are. */
MADE_TEST(growth_comes_back_bit_by_bit) {
  draw_begin(48);
  for (size_t n = 0; n <= GROWTH_POINTS; n++) {
    struct resume *r;

    m->growth = draw_growth(n);
    m->group.growth = &m->growth;
    r = reread(m);
    begin_again(m);
    assert_false(resume_adopt(r, &m->owners));
    assert_ptr_equal(m->group.growth, &m->track.growth);
    assert_growth(&m->growth, &m->track.growth);
    resume_free(r);
  }
}

/* It waits for members, up to an hour after it was written. */
MADE_TEST(growth_waits_for_members) {
  for (uint64_t late = 0; late <= 1; late++) {
    struct resume *r;

    draw_begin(48);
    m->growth = draw_growth(12);
    m->group.growth = &m->growth;
    m->group.usage.processes = 1;
    m->owners.now_ns = NOW;
    r = reread(m);
    begin_again(m);
    m->group.usage.processes = 0;
    assert_true(resume_adopt(r, &m->owners));
    m->owners.now_ns += HOUR_NS;
    assert_true(resume_adopt(r, &m->owners));
    assert_null(m->group.growth);
    m->owners.now_ns += late;
    m->group.usage.processes = 1;
    assert_false(resume_adopt(r, &m->owners));
    if (late)
      assert_null(m->group.growth);
    else
      assert_growth(&m->growth, &m->track.growth);
    resume_free(r);
  }
}

MADE_TEST(kills_come_back_bit_by_bit) {
  static const char path[] = "/system.slice/a\\x2db \"%\n\xff.service";
  struct cgroup_kills k = {.counts = {.hierarchy = CGROUP_UNIFIED,
                                      .has_kills = true,
                                      .has_parent_kills = true,
                                      .kills = UINT64_MAX,
                                      .ino = UINT64_MAX - 1,
                                      .parent_kills = 3,
                                      .oomd = {true, 17, UINT64_MAX}},
                           .kills.span = NOW / CGROUP_KILLS_SPAN_NS - 2},
                      found;
  struct resume *r;
  const char *found_path;
  size_t cursor = 0;

  for (size_t i = 0; i < CGROUP_KILLS_SPANS; i++)
    k.kills.by_span[i] = k.oomd_kills.by_span[60 - i] =
        UINT32_MAX - (uint32_t)i;
  cgroup_watch_recall(&m->watch, path, &k);
  cgroup_watch_recall_host(&m->watch, 99);
  m->group.cgroup = &(struct cgroup_memory){.path = path};
  r = reread(m);
  begin_again(m);
  resume_adopt(r, &m->owners);
  assert_true(m->watch.has_host_kills && m->watch.host_kills == 99);
  found_path = cgroup_watch_next_kills(&m->watch, &cursor, &found);
  assert_string_equal(found_path, path);
  assert_ptr_equal(m->group.cgroup->path, found_path);
  assert_memory_equal(&found.kills, &k.kills, sizeof(k.kills));
  assert_memory_equal(&found.oomd_kills, &k.oomd_kills, sizeof(k.oomd_kills));
  assert_true(found.counts.oomd.is_known && found.counts.oomd.ooms == 17 &&
              found.counts.oomd.kills == UINT64_MAX);
  assert_int_equal(found.counts.hierarchy, CGROUP_UNIFIED);
  assert_true(found.counts.has_kills && found.counts.has_parent_kills &&
              found.counts.kills == UINT64_MAX &&
              found.counts.ino == UINT64_MAX - 1 &&
              found.counts.parent_kills == 3);
  resume_free(r);
}

static const struct alarm_state an_alarm = {
    .causes = 5,
    .told = 4,
    .seen = 7,
    .runs = {0, 1, 2, 3, 0},
    .is_soon = true,
    .had_members = true,
    .was_known = true,
    .is_open = true,
    .since_ns = NOW - 7,
    .kill = {.is_new = true, .last_ns = NOW - 9, .told_ns = NOW}};

static void assert_alarm(const struct alarm_state *a) {
  const struct alarm_state *b = &an_alarm;

  assert_true(a->causes == b->causes && a->told == b->told &&
              a->seen == b->seen && a->is_soon && a->had_members &&
              a->was_known && a->is_open && a->since_ns == b->since_ns &&
              a->kill.is_new && a->kill.last_ns == b->kill.last_ns &&
              a->kill.told_ns == b->kill.told_ns);
  assert_memory_equal(a->runs, b->runs, sizeof(a->runs));
}

/* Those of a group, with members or not, and that of the host. */
MADE_TEST(alarms_come_back) {
  struct resume *r;

  m->group.alarm = m->host_alarm = an_alarm;
  m->group.usage.processes = 0;
  r = reread(m);
  begin_again(m);
  assert_false(resume_adopt(r, &m->owners));
  assert_alarm(&m->group.alarm);
  assert_alarm(&m->host_alarm);
  resume_free(r);
}

MADE_TEST(an_alarm_of_this_run_is_better) {
  struct resume *r;

  m->group.alarm = an_alarm;
  r = reread(m);
  begin_again(m);
  m->group.alarm.seen = 2;
  assert_false(resume_adopt(r, &m->owners));
  assert_int_equal(m->group.alarm.seen, 2);
  assert_int_equal(m->group.alarm.causes, 0);
  resume_free(r);
}

/* Only what still cools down, with all names that an alarm can have, and no
 * longer than Cooldown. */
MADE_TEST(cooldowns_come_back) {
  static const struct cooldown cooldowns[] = {
      {.until_ns = NOW + 7,
       .severity = SEVERITY_FAILURE,
       .group = "a group \xc3\xa9-",
       .type = "memory",
       .type_instance = ""},
      {.until_ns = NOW, .group = "over"},
      {.until_ns = NOW + 2 * HOUR_NS, .group = "long"}};
  const struct cooldown *found = m->cooldowns.at;
  struct resume *r;

  memcpy(m->cooldowns.at, cooldowns, sizeof(cooldowns));
  m->cooldowns.n = LENGTH(cooldowns);
  r = reread(m);
  begin_again(m);
  memset(m->cooldowns.at, 0, sizeof(m->cooldowns.at));
  resume_adopt(r, &m->owners);
  assert_int_equal(m->cooldowns.n, 2);
  assert_int_equal(found[0].until_ns, NOW + 7);
  assert_int_equal(found[0].severity, SEVERITY_FAILURE);
  assert_string_equal(found[0].group, cooldowns[0].group);
  assert_string_equal(found[0].type, "memory");
  assert_string_equal(found[0].type_instance, "");
  assert_string_equal(found[1].group, "long");
  assert_int_equal(found[1].until_ns, NOW + HOUR_NS);
  resume_free(r);
}

/* --- what counts as nothing --- */

static void give_all(struct made *m) {
  struct cgroup_kills k = {
      .counts = {.has_kills = true, .hierarchy = CGROUP_UNIFIED}};

  draw_begin(48);
  m->growth = draw_growth(20);
  m->group.growth = &m->growth;
  cgroup_watch_recall(&m->watch, "/a", &k);
  cgroup_watch_recall_host(&m->watch, 1);
}

static void assert_adopted(struct made *m, bool is_expected) {
  struct resume *r = reread(m);
  struct cgroup_kills k;
  size_t cursor = 0;

  begin_again(m);
  resume_adopt(r, &m->owners);
  assert_int_equal(m->group.growth != NULL, is_expected);
  assert_int_equal(m->watch.has_host_kills, is_expected);
  assert_int_equal(cgroup_watch_next_kills(&m->watch, &cursor, &k) != NULL,
                   is_expected);
  resume_free(r);
}

/* Growth counts for its window, here an hour, and so do kills. */
MADE_TEST(what_is_too_old_counts_as_nothing) {
  for (uint64_t late = 0; late <= 1; late++) {
    struct resume *r;
    struct cgroup_kills k;
    size_t cursor = 0;

    m->owners.now_ns = NOW;
    give_all(m);
    r = reread(m);
    begin_again(m);
    m->owners.now_ns = NOW + HOUR_NS + late;
    assert_false(resume_adopt(r, &m->owners));
    assert_int_equal(m->group.growth != NULL, !late);
    assert_int_equal(m->watch.has_host_kills, !late);
    assert_int_equal(cgroup_watch_next_kills(&m->watch, &cursor, &k) != NULL,
                     !late);
    resume_free(r);
  }
}

/* The same clock, but it shows less. */
MADE_TEST(a_state_of_the_future_counts_as_nothing) {
  struct resume *r;

  give_all(m);
  r = reread(m);
  begin_again(m);
  m->owners.now_ns--;
  assert_false(resume_adopt(r, &m->owners));
  assert_null(m->group.growth);
  resume_free(r);
}

MADE_TEST(a_state_of_another_boot_counts_as_nothing) {
  struct resume *r;

  give_all(m);
  r = reread(m);
  begin_again(m);
  m->owners.boot_id = "another";
  assert_false(resume_adopt(r, &m->owners));
  assert_null(m->group.growth);
  resume_free(r);
}

MADE_TEST(without_a_boot_nothing_is_written) {
  size_t len;
  char *text;

  m->owners.boot_id = "";
  text = write_document(m, &len);
  assert_string_equal(text, "{}\n");
  free(text);
}

/* The group of another rule or window has other members, or points; an alarm
 * does not depend on the window. */
MADE_TEST(growth_of_another_rule_or_window_counts_as_nothing) {
  give_all(m);
  assert_adopted(m, true);
  for (int i = 0; i < 2; i++) {
    struct resume *r;

    give_all(m);
    m->group.alarm = an_alarm;
    r = reread(m);
    begin_again(m);
    if (i == 0)
      m->rule.text[0] = 'c';
    else
      m->report.growth_window_ns *= 2;
    assert_false(resume_adopt(r, &m->owners));
    assert_null(m->group.growth);
    assert_int_equal(m->group.alarm.seen, i == 0 ? 0 : an_alarm.seen);
    m->rule.text[0] = 'C';
    resume_free(r);
  }
}

/* FNV-1a, as its authors give it, of what is between the bracket and the last
 * line. */
static void sign(char *text) {
  char *begin = strchr(text, '[') + 1, *end = strstr(text, ",\n\"end ");
  uint64_t hash = UINT64_C(0xcbf29ce484222325);

  for (const char *at = begin; at < end; at++)
    hash = (hash ^ (uint64_t)(*at & 0xff)) * UINT64_C(0x100000001b3);
  assert_int_equal(snprintf(end, 30, ",\n\"end %016" PRIx64 "\"]}\n", hash),
                   27);
}

/* Nobody complains about an older one that had none. */
MADE_TEST(another_version_counts_as_nothing) {
  static const char old[] = "{\"format\":\"smaps-snapshot\"}\n";
  struct resume *r = (struct resume *)&r;
  size_t len;
  char *text;

  assert_int_equal(read_text(m, old, strlen(old), &r), 0);
  assert_null(r);
  for (int i = 0; i < 2; i++) {
    begin_again(m);
    give_all(m);
    text = write_document(m, &len);
    if (i > 0)
      strstr(text, "version ")[8]++;
    sign(text);
    assert_int_equal(read_text(m, text, len, &r), 0);
    begin_again(m);
    assert_false(resume_adopt(r, &m->owners));
    assert_int_equal(m->group.growth == NULL, i);
    resume_free(r);
    free(text);
  }
}

/* --- what is damaged --- */

static void assert_refused(const struct made *m, const char *text, size_t len) {
  struct resume *r = (struct resume *)&r;

  if (read_text(m, text, len, &r) != -EBADMSG || r != (struct resume *)&r)
    fail_msg("%zu: %s", len, text);
}

MADE_TEST(what_is_no_state_is_refused) {
  static const char *const texts[] = {
      "",
      "{}",
      "{\"resume\":[",
      "{\"resume\":[\n\"]}\n",
      "{\"resume\":[,\n\"end cbf29ce484222325\"]}\n",
      "{\"resume\":[\n\"version 2\",\n\"end 0000000000000000\"]}\n",
  };

  for (size_t i = 0; i < LENGTH(texts); i++)
    assert_refused(m, texts[i], strlen(texts[i]));
}

/* Each byte is lost, becomes another, or is the last. */
MADE_TEST(no_damage_passes) {
  size_t len;
  char *text, was;

  draw_begin(48);
  m->growth = draw_growth(12);
  m->group.growth = &m->growth;
  text = write_document(m, &len);
  for (size_t i = strlen("{\"resume\":["); i < len; i++) {
    was = text[i];
    text[i] = "0 9-%\"\n\\a"[draw(9)];
    if (text[i] != was)
      assert_refused(m, text, len);
    text[i] = was;
    assert_refused(m, text, i);
  }
  free(text);
}

/* By a program that has signed it: each is left out alone. */
MADE_TEST(records_that_cannot_be_are_left_out) {
  static const char *const kinds[] = {"alarm  ", "cgroup 67 ", "kills 2f61 "};

  for (size_t i = 0; i < LENGTH(kinds); i++)
    for (int k = 0; k < 3; k++) {
      char text[40000], header[200];
      struct resume *r = NULL;
      size_t len, size;
      char *whole = write_document(m, &len);

      snprintf(header, sizeof(header), "%.*s",
               (int)(strstr(whole, "\",\n") - whole), whole);
      free(whole);
      size =
          (size_t)snprintf(text, sizeof(text), "%s\",\n\"%s", header, kinds[i]);
      if (k == 0)
        strcpy(text + size, "zz");
      else if (k == 1)
        strcpy(text + size, "1");
      else
        snprintf(text + size, sizeof(text) - size, "%030000d", 1);
      strcat(text, "\",\n\"end 0123456789abcdef\"]}\n");
      sign(text);
      assert_int_equal(read_text(m, text, strlen(text), &r), 0);
      begin_again(m);
      assert_false(resume_adopt(r, &m->owners));
      assert_int_equal(m->host_alarm.seen, 0);
      assert_null(m->group.cgroup);
      assert_int_equal(m->watch.n, 0);
      resume_free(r);
    }
}

/* Points that are closer together than any cycle makes them do not overflow. */
MADE_TEST(crowded_points_leave_room) {
  struct growth g;

  draw_begin(48);
  g = draw_growth(GROWTH_POINTS);
  for (size_t i = 0; i < g.n; i++)
    g.points[i].time_ns = NOW - NS + i;
  g.lowest.time_ns = 0;
  g.due_ns = NOW;
  growth_resume(&g, NOW);
  for (uint64_t t = NOW; t < NOW + HOUR_NS / 4; t += 10 * NS)
    growth_note(&g, &(struct growth_sample){.time_ns = t,
                                            .has_members = true,
                                            .is_known = true,
                                            .bytes = t % 1000,
                                            .whole_bytes = 1000});
  assert_true(g.n <= GROWTH_POINTS);
}

/* --- size --- */

/* The state is there in any case. */
MADE_TEST(a_document_that_is_nearly_too_large_remembers_nothing) {
  struct json j = {.max = RESUME_MAX};

  json_object(&j, NULL);
  resume_write(&j, &m->owners);
  assert_int_equal(j.len, 1);
  j.max++;
  resume_write(&j, &m->owners);
  assert_true(j.len > 1 && j.error == 0);
  json_done(&j);
}

/* It is read to its beginning all the same, behind a document of any length. */
MADE_TEST(lines_end_before_they_are_too_many) {
  static struct group *groups[20000];
  struct json j = {.max = JSON_MAX};
  struct resume *r;
  size_t len, before = RESUME_MAX / 2;
  char *text, *filling = calloc(1, before + 1);

  draw_begin(48);
  m->growth = draw_growth(GROWTH_POINTS);
  m->group.growth = &m->growth;
  for (size_t i = 0; i < LENGTH(groups); i++)
    groups[i] = &m->group;
  m->table = (struct group_table){.groups = groups, .n = LENGTH(groups)};
  memset(filling, 'x', before);
  json_object(&j, NULL);
  json_string(&j, "filling", filling);
  resume_write(&j, &m->owners);
  json_end_object(&j);
  assert_int_equal(json_finish(&j, &text, &len), 0);
  assert_true(len - before < RESUME_MAX && len > RESUME_MAX);
  assert_int_equal(read_text(m, text, len, &r), 0);
  assert_non_null(r);
  begin_again(m);
  m->table = (struct group_table){.groups = m->groups, .n = 1};
  assert_false(resume_adopt(r, &m->owners));
  assert_growth(&m->growth, &m->track.growth);
  resume_free(r);
  free(text);
  free(filling);
}
