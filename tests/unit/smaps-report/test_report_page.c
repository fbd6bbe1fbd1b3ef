/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "load.h"
#include "page_data.h"
#include "split.h"

#include <stdlib.h>
#include <string.h>

/* A document with these keys, in which ' stands for ". */
static struct document load(const char *keys) {
  struct document d;
  struct config_error reason = {""};
  char *text;
  size_t size;
  FILE *file = open_memstream(&text, &size);

  fprintf(file, "{'format':'smaps-snapshot','version':2,%s}", keys);
  fclose(file);
  for (char *quote = text; (quote = strchr(quote, '\''));)
    *quote = '"';
  if (load_document_text(text, size, NULL, &d, &reason) < 0)
    fail_msg("%s", reason.text);
  free(text);
  return d;
}

/* ---- private and anonymous ---- */

struct split_case {
  const char *name;
  const char *amounts; /* of a usage, or a mapping with its name */
  struct split expected;
};

static void assert_split(const struct split_case *c, struct split s) {
  const struct split *e = &c->expected;

  if (s.anon != e->anon || s.file != e->file || s.shmem != e->shmem ||
      s.private_anon != e->private_anon || s.error != e->error)
    fail_msg("%s: anon %ju, file %ju, shmem %ju, private %ju ± %ju", c->name,
             (uintmax_t)s.anon, (uintmax_t)s.file, (uintmax_t)s.shmem,
             (uintmax_t)s.private_anon, (uintmax_t)s.error);
}

#define NOTHING                                                                \
  { MISSING, MISSING, MISSING, MISSING, MISSING }

TEST(private_anonymous_memory_has_bounds) {
  static const struct split_case cases[] = {
      {"without a file all that is private is anonymous",
       "'pss':100,'uss':80,'rss':140,'pss_anon':100,'pss_shmem':0",
       {100, 0, 0, 80, 0}},
      {"what exceeds files is anonymous; what exceeds it, of files",
       "'pss':100,'uss':70,'rss':160,'pss_anon':60,'pss_shmem':10",
       {60, 30, 10, 45, 15}},
      {"anonymous pages that all count whole are private",
       "'pss':100,'uss':70,'rss':160,'pss_anon':60,'pss_shmem':0,"
       "'anonymous':60",
       {60, 40, 0, 60, 0}},
      {"a shared page has two users at least",
       "'pss':100,'uss':70,'rss':300,'pss_anon':60,'pss_shmem':0,"
       "'anonymous':66",
       {60, 40, 0, 57, 3}},
      {"files that all count whole are private",
       "'pss':100,'uss':70,'rss':160,'pss_anon':60,'pss_shmem':0,"
       "'anonymous':120",
       {60, 40, 0, 30, 0}},
      {"estimates that contradict each other have the difference as an error",
       "'pss':100,'uss':90,'rss':100,'pss_anon':20,'pss_shmem':0,"
       "'anonymous':100",
       {20, 80, 0, 5, 5}},
      {"parts above the PSS are cut",
       "'pss':100,'uss':0,'rss':100,'pss_anon':90,'pss_shmem':50",
       {90, 0, 10, 0, 0}},
      {"numbers that overflow are no failure",
       "'pss':18446744073709551614,'uss':1,'rss':18446744073709551614,"
       "'pss_anon':18446744073709551614,'pss_shmem':0,'anonymous':1",
       {MISSING - 1, 0, 0, 1, 0}},
      {"an old kernel", "'pss':100,'uss':80,'rss':140", NOTHING},
      {"no reading", "'rss':140", NOTHING},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[300];
    struct document d;

    snprintf(text, sizeof(text), "'groups':[{'name':'g','usage':{%s}}]",
             cases[i].amounts);
    d = load(text);
    assert_split(&cases[i], split_amounts(&d.groups[0].amounts));
    document_done(&d);
  }
}

#define ALL "'rss':100,'pss':60,'private_clean':10,'private_dirty':30"

TEST(mappings_are_split_by_their_anonymous_pages_and_names) {
  static const struct split_case cases[] = {
      {"a heap", "'name':'[heap]'," ALL ",'anonymous':100", {60, 0, 0, 40, 0}},
      {"a file that was only read",
       "'name':'/a'," ALL ",'anonymous':0",
       {0, 60, 0, 0, 0}},
      {"a file with private copies of pages",
       "'name':'/a'," ALL ",'anonymous':80",
       {46, 14, 0, 30, 10}},
      {"memory in /dev/shm",
       "'name':'/dev/shm/a'," ALL ",'anonymous':0",
       {0, 0, 60, 0, 0}},
      {"a memfd",
       "'name':'/memfd:a (deleted)'," ALL ",'anonymous':0",
       {0, 0, 60, 0, 0}},
      {"named shared memory", "'name':'[anon_shmem:a]'," ALL, {0, 0, 60, 0, 0}},
      {"a heap of an older document",
       "'name':'[heap]'," ALL,
       {60, 0, 0, 40, 0}},
      {"a file of an older document", "'name':'/a'," ALL, {0, 60, 0, 0, 0}},
      {"the rest of an older document", ALL, NOTHING},
      {"only a size", "'name':'/a','size':4096", NOTHING},
  };

  for (size_t i = 0; i < LENGTH(cases); i++) {
    char text[300];
    struct document d;

    snprintf(text, sizeof(text), "'mappings':[{%s}]", cases[i].amounts);
    d = load(text);
    assert_split(&cases[i], split_mapping(&d.mappings[0]));
    document_done(&d);
  }
}

TEST(a_process_is_the_sum_of_its_mappings_where_it_has_no_rollup) {
  static const struct split_case c = {
      "a capture", NULL, {60, 60, 0, MISSING, MISSING}};
  struct document d =
      load("'processes':[{'pid':1,'usage':{'pss':180,'uss':120,'rss':300},"
           "'mappings':[{'name':'[heap]'," ALL "},{'name':'/a'," ALL "},{" ALL
           "}]}]");

  assert_split(&c, split_process(&d.processes[0]));
  document_done(&d);
}

/* ---- the data of the page ---- */

/* To be freed. */
static char *write(const char *keys, const char *old_keys) {
  struct document d = load(keys), old = {0};
  char *text;
  size_t size;
  FILE *file = open_memstream(&text, &size);

  if (old_keys)
    old = load(old_keys);
  page_data_write(&d, old_keys ? &old : NULL, file);
  fclose(file);
  document_done(&d);
  document_done(&old);
  return text;
}

static void assert_has(const char *text, const char *expected) {
  if (!strstr(text, expected))
    fail_msg("no %s in:\n%s", expected, text);
}

static void assert_lacks(const char *text, const char *words) {
  if (strstr(text, words))
    fail_msg("%s in:\n%s", words, text);
}

TEST(no_name_can_end_the_script_that_it_is_in) {
  char *text = write("'host':'</script><script>alert(1)</script>',"
                     "'kernel':'<!--<script>','groups':[{'name':'a&b\\u0007'}],"
                     "'processes':[{'pid':1,'comm':'\\u2028\\u202e',"
                     "'command_line':'\\\"\\\\',"
                     "'mappings':[{'name':'</SCRIPT >'}]}]",
                     NULL);

  for (const char *c = text; *c; c++)
    if (*c == '<' || *c == '>' || *c == '&')
      fail_msg("there is a %c: %s", *c, c);
  assert_has(text, "\"\\u003c/script\\u003e\\u003cscript\\u003ealert(1)");
  assert_has(text, "\"\\u003c!--\\u003cscript\\u003e\"");
  assert_has(text, "\"a\\u0026b\\\\x07\"");
  /* Characters that are invisible, or that move others, are shown as bytes. */
  assert_has(text, "\"\\\\xe2\\\\x80\\\\xa8\\\\xe2\\\\x80\\\\xae\"");
  assert_has(text, "\"\\\"\\\\\"");
  assert_lacks(text, "\xe2\x80");
  free(text);
}

TEST(unknown_values_keep_their_place_in_a_row) {
  char *text =
      write("'groups':[{'name':'g','rule':0},{'name':'v','rule':1}],"
            "'rules':['a','b'],'processes':[{'pid':7,'comm':'c','uid':0,"
            "'groups':['v','g'],'rule':0,'usage':{'pss':5}}]",
            NULL);

  assert_has(text, "[7,\"c\",\"c\",0,[0,1],null,null,null,null,5,null,null,"
                   "null,null,null,null,null,null,null]");
  assert_lacks(text, "\"areas\"");
  assert_lacks(text, "\"old\"");
  free(text);
}

TEST(group_of_unknown_pss_has_at_least_the_pss_of_its_members) {
  char *text = write("'groups':[{'name':'g','usage':{'rss':90}},"
                     "{'name':'h','usage':{'rss':9}},{'name':'k'}],"
                     "'processes':[{'pid':1,'groups':['g'],"
                     "'usage':{'pss':5,'rss':40}},"
                     "{'pid':2,'groups':['g'],'usage':{'rss':50}},"
                     "{'pid':3,'groups':['h'],'usage':{'rss':9}},"
                     "{'pid':4,'groups':['k'],'usage':{'pss':7}}]",
                     NULL);

  assert_has(text, "{\"name\":\"g\",\"pss\":5,\"rss\":90,\"pss_error\":0,"
                   "\"at_least\":1}");
  assert_has(text, "{\"name\":\"h\",\"rss\":9}");
  assert_has(text, "{\"name\":\"k\",\"pss\":7,\"pss_error\":0,"
                   "\"at_least\":1}");
  free(text);
}

TEST(long_command_lines_are_cut_in_the_middle_between_characters) {
  char keys[1000], *text, long_line[603] = "x", want[300] = "\"x";

  for (size_t i = 1; i < 601; i += 2)
    memcpy(long_line + i, "ö", 2);
  strcpy(long_line + 601, "z");
  /* 101 bytes, and 99: the hundredth from the end is in a character. */
  for (size_t i = 0; i < 99; i++)
    strcat(want, i == 50 ? "…ö" : "ö");
  strcat(want, "z\"");
  snprintf(keys, sizeof(keys), "'processes':[{'pid':1,'command_line':'%s'}]",
           long_line);
  text = write(keys, NULL);
  assert_has(text, want);
  free(text);
}

/* ---- causes of errors ---- */

#define CAUSES_OF(error, by)                                                   \
  "'groups':[{'name':'g','pss_error':" error ",'pss_error_by':{" by            \
  "},'usage':{'pss':10000}}]"

static const struct {
  const char *keys;
  const char *expected; /* NULL: none */
} causes[] = {
    {CAUSES_OF("300", "'fork':100,'time':200"),
     "3.0 %: 2.0 % because readings are old: others may share the memory by "
     "now, or no longer, 1.0 % because members were forked and have not been "
     "read since"},
    /* Less than 0.05 % of PSS is left out; equal parts have an order. */
    {CAUSES_OF("4000", "'swap':400,'ksm':1780,'copies':1780,'fork':4"),
     "40.0 %: 17.8 % because memory shared since a fork was copied on write, "
     "or unmapped, 17.8 % because the kernel merged equal pages (KSM), or "
     "separated them, 4.0 % because memory went to swap or came back"},
    {CAUSES_OF("996", "'ended':996"),
     "10.0 %: 10.0 % because members ended while they were measured"},
    {CAUSES_OF("10", "'ended':10"),
     "0.1 %: 0.1 % because members ended while they were measured"},
    {CAUSES_OF("9", "'ended':9"), NULL},
    {CAUSES_OF("0", ""), NULL},
    {CAUSES_OF("300", ""), NULL},
    {"'groups':[{'name':'g','pss_error':300,'usage':{'pss':10000}}]", NULL},
    {"'groups':[{'name':'g','pss_error_by':{'fork':1},'usage':{'pss':9}}]",
     NULL},
    {"'groups':[{'name':'g','pss_error':1,'pss_error_by':{'fork':1},"
     "'usage':{'pss':0}}]",
     NULL},
    {"'groups':[{'name':'g','pss_error':1,'pss_error_by':{'fork':1}}]", NULL},
};

TEST(the_causes_of_an_error_are_explained) {
  for (size_t i = 0; i < LENGTH(causes); i++) {
    char expected[512] = "\"causes\":";
    char *text = write(causes[i].keys, NULL);

    if (causes[i].expected)
      snprintf(expected, sizeof(expected), "\"causes\":\"%s\"",
               causes[i].expected);
    if ((strstr(text, expected) != NULL) != (causes[i].expected != NULL))
      fail_msg("%s: %s", causes[i].keys, text);
    free(text);
  }
}
