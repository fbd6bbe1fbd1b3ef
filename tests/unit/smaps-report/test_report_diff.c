/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "column.h"
#include "diff.h"
#include "folded.h"
#include "load.h"

#include <stdlib.h>
#include <string.h>

/* What a document is made of; NULL means that there is none. */
struct parts {
  const char *host;      /* "a" where it is NULL */
  const char *capture;   /* of that group */
  const char *groups;    /* "name pss, ..." */
  const char *processes; /* "pid start comm group pss, ..." */
  const char *workers;   /* of one service: "pid parent command pss, ..." */
  const char *mappings;  /* "name amount number, ..." */
  const char *left_out;
  const char *json; /* further keys, with ' in place of " */
};

#define PARTS(...) (&(struct parts){__VA_ARGS__})

/* Prints an array: the pattern for each row, with its words for each '$'. */
static void print_rows(FILE *out, const char *key, const char *rows,
                       const char *pattern) {
  if (rows)
    fprintf(out, ",'%s':[", key);
  for (const char *word = rows; word; word = *word ? word + 1 : NULL) {
    for (const char *p = pattern; *p; p++) {
      if (*p != '$') {
        fputc(*p, out);
        continue;
      }
      word += strspn(word, " ");
      word += fprintf(out, "%.*s", (int)strcspn(word, " ,"), word);
    }
    fputc(*word ? *word : ']', out);
  }
}

/* To be freed. */
static char *print_parts(const struct parts *p) {
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);

  fprintf(out, "{'format':'smaps-snapshot','version':2,'host':'%s'",
          p->host ? p->host : "a");
  if (p->capture)
    fprintf(out, ",'trigger':{'kind':'notification','group':'%s'}", p->capture);
  print_rows(out, "groups", p->groups, "{'name':'$','usage':{'pss':$}}");
  print_rows(out, "processes", p->processes,
             "{'pid':$,'starttime':$,'comm':'$','groups':['$'],"
             "'usage':{'pss':$}}");
  print_rows(out, "processes", p->workers,
             "{'pid':$,'ppid':$,'starttime':5,'comm':'w','groups':['g'],"
             "'command_line':'$','usage':{'pss':$}}");
  print_rows(out, "mappings", p->mappings, "{'name':'$','$':$}");
  if (p->left_out)
    fprintf(out, ",'left_out':%s", p->left_out);
  if (p->json)
    fprintf(out, ",%s", p->json);
  fprintf(out, "}");
  fclose(out);
  for (char *quote = text; (quote = strchr(quote, '\''));)
    *quote = '"';
  return text;
}

static struct document load(const struct parts *p) {
  char *text = print_parts(p);
  struct config_error reason = {""};
  struct document d;

  if (load_document_text(text, strlen(text), NULL, &d, &reason) < 0)
    fail_msg("%s", reason.text);
  free(text);
  return d;
}

/* ---- diff ---- */

struct pair {
  struct document old;
  struct document new;
  struct diff diff;
};

static struct pair compare(const struct parts *old, const struct parts *new,
                           const char *group) {
  struct pair p = {.old = load(old), .new = load(new)};

  diff_make(&p.old, &p.new, AMOUNT_PSS, group, &p.diff);
  return p;
}

static void done(struct pair *p) {
  diff_done(&p->diff);
  document_done(&p->old);
  document_done(&p->new);
}

/* "web +5 10>15 stayed", a line for each change; '-' is unknown. And the pair
 * is done with. */
static void check(struct pair *p, const struct changes *changes,
                  const char *expected) {
  static const char *const hows[] = {"stayed", "restarted", "new",
                                     "gone",   "listed",    "unlisted"};
  struct style s = {.mem_total = MISSING, .unit = UNIT_HUMAN};
  struct text t = {0};

  text_add(&t, "");
  for (size_t i = 0; i < changes->n; i++) {
    const struct change *c = &changes->all[i];

    text_addf(&t, "%s ", c->name ? c->name : "-");
    text_add_change(&t, c->is_less, c->size, &s);
    text_add(&t, " ");
    text_add_bytes(&t, c->old, &s);
    text_add(&t, ">");
    text_add_bytes(&t, c->new, &s);
    text_addf(&t, " %s\n", hows[c->how]);
  }
  assert_string_equal(t.bytes, expected);
  text_done(&t);
  done(p);
}

TEST(groups_are_compared_by_name) {
  struct pair p =
      compare(PARTS(.json = "'groups':[{'name':'b','usage':{'pss':10}},"
                            "{'name':'a','usage':{'pss':100}},"
                            "{'name':'same','usage':{'pss':5}},"
                            "{'name':'gone','usage':{'pss':7}},"
                            "{'name':'n'},{'name':'x'}]"),
              PARTS(.json = "'groups':[{'name':'a','usage':{'pss':60}},"
                            "{'name':'b','usage':{'pss':15}},"
                            "{'name':'same','usage':{'pss':5}},"
                            "{'name':'new','usage':{'pss':8}},"
                            "{'name':'n','usage':{'pss':3}},{'name':'x'}]"),
              NULL);

  check(&p, &p.diff.groups,
        "a -40 100>60 stayed\n"
        "new +8 0>8 new\n"
        "gone -7 7>0 gone\n"
        "b +5 10>15 stayed\n"
        "n - ->3 stayed\n"
        "x - ->- stayed\n");
}

/* A page that went to swap is no change of it. */
TEST(epss_is_compared_as_pss_and_swap) {
  struct pair p = {
      .old = load(
          PARTS(.json =
                    "'groups':[{'name':'out','usage':{'pss':100,'swap':5}},"
                    "{'name':'a','pss_error':2,'usage':{'pss':100,'swap':5}},"
                    "{'name':'n','usage':{'pss':100}}]")),
      .new = load(
          PARTS(.json =
                    "'groups':[{'name':'out','usage':{'pss':30,'swap':75}},"
                    "{'name':'a','pss_error':3,'usage':{'pss':90,'swap':25}},"
                    "{'name':'n','usage':{'pss':100,'swap':0}}]"))};

  diff_make(&p.old, &p.new, column_find("epss", 4), NULL, &p.diff);
  assert_int_equal(p.diff.groups.all[0].old_error, 2);
  assert_int_equal(p.diff.groups.all[0].new_error, 3);
  check(&p, &p.diff.groups,
        "a +10 105>115 stayed\n"
        "n - ->100 stayed\n");
}

/* Their order of start and their pids have no meaning. */
TEST(restarted_workers_are_paired_by_size) {
  struct pair p = compare(
      PARTS(.processes = "11 7 w g 40, 10 5 w g 100, "
                         "12 9 w g 50, 20 5 w other 900"),
      PARTS(.processes = "31 97 w g 41, 99 98 w g 103, 40 99 w g 60"), NULL);

  assert_int_equal(p.diff.processes.all[2].old_process->pid, 10);
  assert_int_equal(p.diff.processes.all[2].new_process->pid, 99);
  check(&p, &p.diff.processes,
        "w -900 900>0 gone\n"
        "w +10 50>60 restarted\n"
        "w +3 100>103 restarted\n"
        "w +1 40>41 restarted\n");
}

TEST(the_smallest_of_more_workers_are_gone) {
  struct pair p = compare(
      PARTS(.processes = "11 7 w g 40, 12 8 w g 300, 13 9 w g 20, 14 9 w g 90"),
      PARTS(.processes = "31 97 w g 91, 32 98 w g 41, 33 99 w g 303"), NULL);

  check(&p, &p.diff.processes,
        "w -20 20>0 gone\n"
        "w +3 300>303 restarted\n"
        "w +1 90>91 restarted\n"
        "w +1 40>41 restarted\n");
}

/* The master is the parent, whatever its pid and size. */
TEST(a_master_is_paired_with_a_master_and_roles_by_their_command) {
  struct pair p = compare(
      PARTS(.workers = "10 1 w 500, 11 10 w:log 30, 12 10 w 200, "
                       "13 10 w:y 100"),
      PARTS(.host = "b", .workers = "20 24 w 201, 21 24 w:log 90, 24 1 w 60, "
                                    "25 24 w:z 110"),
      NULL);

  check(&p, &p.diff.processes,
        "w -440 500>60 restarted\n"
        "w +60 30>90 restarted\n"
        "w +10 100>110 restarted\n"
        "w +1 200>201 restarted\n");
}

/* The master stays; two of its workers are replaced by one. */
TEST(a_worker_is_replaced_by_a_worker) {
  struct pair p =
      compare(PARTS(.workers = "10 1 w 500, 11 10 w 30, 12 10 w 200"),
              PARTS(.workers = "10 1 w 500, 21 10 w 90"), NULL);

  check(&p, &p.diff.processes,
        "w -110 200>90 restarted\n"
        "w -30 30>0 gone\n");
}

TEST(pids_of_another_host_are_not_compared) {
  struct pair p = compare(PARTS(.processes = "1 5 a g 10"),
                          PARTS(.host = "b", .processes = "1 5 b g 10"), NULL);

  check(&p, &p.diff.processes, "a -10 10>0 gone\nb +10 0>10 new\n");
}

/* Of a process that is written at a time, and is so old then. */
#define AT(time, comm, uptime)                                                 \
  PARTS(.json = "'time':" time ",'processes':[{'pid':1,'starttime':5,"         \
                "'comm':'" comm "','groups':['g'],'uptime':" uptime            \
                ",'usage':{'pss':" uptime "}}]")

/* A process may be younger than the document that has it. */
TEST(pids_from_before_a_boot_are_not_compared) {
  struct pair p = compare(AT("1000", "a", "60"), AT("1030", "b", "90"), NULL);

  check(&p, &p.diff.processes, "b +30 60>90 stayed\n");
  p = compare(AT("1000", "a", "0"), AT("1030", "b", "29"), NULL);
  check(&p, &p.diff.processes, "b +29 0>29 stayed\n");
  p = compare(AT("1000", "a", "60"), AT("1200", "b", "90"), NULL);
  check(&p, &p.diff.processes, "b +90 0>90 new\na -60 60>0 gone\n");
  p = compare(AT("1200", "b", "90"), AT("1000", "a", "60"), NULL);
  check(&p, &p.diff.processes, "b -90 90>0 gone\na +60 0>60 new\n");
  p = compare(AT("1000", "a", "60"), AT("1200", "a", "90"), NULL);
  check(&p, &p.diff.processes, "a +30 60>90 restarted\n");
}

TEST(values_left_out_of_a_capture_are_unknown) {
  struct pair p = compare(
      PARTS(.processes = "1 1 a g 10, 2 2 b g 10, 9 9 z h 10"),
      PARTS(.capture = "g", .processes = "1 1 a g 12", .left_out = "1"), NULL);

  check(&p, &p.diff.processes, "a +2 10>12 stayed\nb - 10>- unlisted\n");
  p = compare(PARTS(.capture = "g", .left_out = "1"),
              PARTS(.capture = "g", .processes = "1 1 a g 12"), NULL);
  check(&p, &p.diff.processes, "a - ->12 listed\n");
  p = compare(PARTS(.capture = "g", .left_out = "0"),
              PARTS(.capture = "h", .left_out = "0"), NULL);
  assert_false(p.diff.has_processes);
  done(&p);
}

TEST(mappings_are_compared_by_name) {
  struct pair p = compare(
      PARTS(.capture = "g", .mappings = "b pss 5, a pss 9, gone pss 3"),
      PARTS(.capture = "g",
            .json = "'mappings':[{'name':'a','pss':10},{'name':'b','pss':5},"
                    "{'name':'new','pss':4},{'pss':6}]"),
      NULL);

  /* "gone" may be in the rest of the new one, "new" was not there. */
  check(&p, &p.diff.mappings,
        "[rest] +6 0>6 new\n"
        "new +4 0>4 new\n"
        "a +1 9>10 stayed\n"
        "gone - 3>- unlisted\n");
}

/* ---- folded ---- */

static void check_folded(const struct parts *document, const char *expected,
                         size_t left_out) {
  struct document d = load(document);
  char *text;
  size_t size;
  FILE *out = open_memstream(&text, &size);

  assert_int_equal(folded_write(&d, out), left_out);
  fclose(out);
  assert_string_equal(text, expected);
  free(text);
  document_done(&d);
}

TEST(stacks_are_group_process_and_mapping) {
  check_folded(
      PARTS(.json = "'rules':['a','b'],'groups':[{'name':'g','rule':1},"
                    "{'name':'view','rule':0}],'processes':["
                    "{'pid':1,'comm':'w','groups':['view','g'],'rule':1,"
                    "'usage':{'pss':9},'mappings':[{'name':'[heap]','pss':5},"
                    "{'name':'zero','pss':0},{'name':'x'},{'pss':4}]},"
                    "{'pid':2,'starttime':1,'comm':'p','groups':['g'],"
                    "'usage':{'pss':7}},"
                    "{'pid':3,'starttime':1,'comm':'q','groups':['g'],"
                    "'usage':{'pss':0}},"
                    "{'pid':4,'groups':['g']},{'pid':5,'usage':{'pss':6}},"
                    "{'pid':6,'source':'parent','usage':{'pss':6}}]"),
      "g;w[1];[heap] 5\ng;w[1];[rest] 4\ng;p[2] 7\n[no_group];-[5] 6\n"
      /* of which one has an unknown PSS, and one its parent's */,
      1);
}

/* Samples do not know the PSS of each. */
TEST(mappings_of_unknown_pss_are_in_the_rest_of_their_process) {
  check_folded(
      PARTS(.json = "'processes':[{'pid':1,'comm':'w','groups':['g'],"
                    "'usage':{'pss':9},'mappings_from':'samples','mappings':["
                    "{'name':'a','pss':6},{'name':'b','size':900}]},"
                    "{'pid':2,'comm':'w','groups':['g'],'usage':{'pss':5},"
                    "'mappings_from':'samples','mappings':["
                    "{'name':'a','pss':6},{'name':'b','size':900}]}]"),
      "g;w[1];a 6\ng;w[1];[rest] 3\ng;w[2];a 6\n", 0);
}

TEST(names_make_no_frames_and_no_numbers) {
  check_folded(PARTS(.json = "'processes':[{'pid':1,'starttime':1,"
                             "'comm':'a;b 12\\u001b\\u202e',"
                             "'groups':[' \\u00e9\\n'],'usage':{'pss':3}}]"),
               "_\xc3\xa9_;a_b_12__[1] 3\n", 0);
}

TEST(the_rest_of_a_capture_is_shown) {
  check_folded(PARTS(.capture = "g", .groups = "g 10", .processes = "1 1 a g 3",
                     .left_out = "2"),
               "g;a[1] 3\ng;[rest] 7\n", 0);
  check_folded(PARTS(.capture = "g", .groups = "g 2", .processes = "1 1 a g 3",
                     .left_out = "2"),
               "g;a[1] 3\n", 0);
  check_folded(
      PARTS(.capture = "g", .groups = "g 10", .processes = "1 1 a g 3"),
      "g;a[1] 3\n", 0);
}

TEST(scripts_have_their_own_names) {
  static const struct {
    const char *comm, *command, *title;
  } rows[] = {
      {"python3.11", "/usr/bin/python3.11 -u /opt/job.py x", "job.py"},
      {"perl", "perl -w ./report", "report"},
      {"bash", "bash -O extglob", "bash"},
      {"sh", "sh -e /a/b/", "sh"},
      {"node", "", "node"},
      {"java", "java -Xmx2g -cp /a/b.jar:/c/* org.x.Kafka /etc/k",
       "org.x.Kafka"},
      {"java", "/usr/bin/java -jar /opt/app.jar --port 1", "app.jar"},
      {"java", "java --module-path /m -p /n -m org.x/org.x.Main", "org.x.Main"},
      {"java", "java -cp /a", "java"},
      {"python3", "python3 -p /m x.py", "m"},
      {"shared", "shared /a/b", "shared"},
      {"job.py", "/usr/bin/python3 /opt/job.py", "job.py"}};

  for (size_t i = 0; i < LENGTH(rows); i++) {
    char json[200];
    struct parts parts = {.json = json};
    struct document d;

    snprintf(json, sizeof(json),
             "'processes':[{'pid':1,'comm':'%s','command_line':'%s'}]",
             rows[i].comm, rows[i].command);
    d = load(&parts);
    assert_string_equal(d.processes[0].title, rows[i].title);
    assert_string_equal(d.processes[0].comm, rows[i].comm);
    document_done(&d);
  }
}
