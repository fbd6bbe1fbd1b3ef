#include "selectors.h"

#include "memory.h"
#include "text.h"

#include <smaps/settings.h>

#include <stdlib.h>
#include <string.h>

/* What is shown of a value. */
#define SHOWN_MAX 200

/* Rules see no more of a value (CMDLINE_MAX), and have no longer patterns: a
 * document that has may come from anywhere, and is not tried. */
#define VALUE_MAX 4096
#define PATTERN_MAX 1024

/* glibc copies what a regular expression repeats: (x{999}){999} takes all
 * memory. */
#define REPEATS_MAX 4096

/* ---- values ---- */

#define VALUE_OF(name, key, selector) [ATTRIBUTE_##name] = p->key,
static struct attributes attributes_of(const struct process *p) {
  return (struct attributes){.value = {ATTRIBUTE_TABLE(VALUE_OF, VALUE_OF)},
                             .uid = (uint32_t)p->uid};
}

/* The value in quotation marks, at most SHOWN_MAX bytes of it. */
static void add_value(struct text *t, const char *value,
                      const struct style *s) {
  size_t len = strlen(value), n = len;
  char shown[SHOWN_MAX + 1];

  if (n > SHOWN_MAX)
    for (n = SHOWN_MAX; n > 0 && (value[n] & 0xc0) == 0x80; n--)
      ;
  memcpy(shown, value, n);
  shown[n] = '\0';
  text_add(t, " \"");
  text_add_name(t, shown, s);
  text_add(t, "\"");
  if (n < len)
    text_addf(t, " and %zu more bytes", len - n);
}

/* NULL is unknown, if the kernel can refuse to show the attribute or the user
 * can leave it out; or else the process has none: it is in no unit. */
static bool is_unknown(const struct attributes *id, enum attribute a) {
  return !id->value[a] &&
         (a == ATTRIBUTE_COMM || (REFUSABLE_ATTRIBUTES >> a) & 1);
}

void selectors_show(const struct process *p, const struct style *s,
                    void (*add)(void *ctx, const char *line), void *ctx) {
  struct attributes id = attributes_of(p);
  struct text t = {0};

  for (int i = 0; i < ATTRIBUTES; i++) {
    text_clear(&t);
    text_add(&t, selector_options[2 * i]);
    if (id.value[i])
      add_value(&t, id.value[i], s);
    else
      text_add(&t, is_unknown(&id, (enum attribute)i) ? ": unknown" : ": none");
    add(ctx, t.bytes);
  }
  text_done(&t);
}

/* ---- the text of a rule ---- */

/* The text of a rule is words and strings in quotation marks. */
struct reader {
  struct cursor text;
  struct span word; /* the last one */
  unsigned strings; /* that have followed it */
};

/* A selector in it. */
struct found {
  struct span text;   /* Unit "web.service" */
  const char *option; /* for selector_init() */
  char pattern[PATTERN_MAX];
  bool is_whole; /* the pattern is not cut */
};

/* Consumes a byte of a string; \" \\ and \xNN stand for others. */
static char next_byte(struct cursor *s) {
  char c = *s->at++;
  struct cursor digits;
  uint64_t byte;

  if (c != '\\' || cursor_is_done(s))
    return c;
  c = *s->at++;
  if (c != 'x' || s->end - s->at < 2)
    return c;
  digits = cursor_begin(s->at, 2);
  if (!parse_hex(&digits, &byte))
    return c;
  s->at += 2;
  return (char)byte;
}

/* The plugin writes at most 200 bytes of a string, and then "...". */
static void read_string(struct cursor *s, struct found *ret) {
  const char *begin = ++s->at;
  size_t n = 0;
  bool is_cut;

  while (!cursor_is_done(s) && *s->at != '"') {
    char c = next_byte(s);

    if (n + 1 < PATTERN_MAX)
      ret->pattern[n++] = c;
  }
  ret->pattern[n] = '\0';
  is_cut = s->at - begin > 190 && memcmp(s->at - 3, "...", 3) == 0;
  ret->is_whole = parse_char(s, '"') && !is_cut && n + 1 < PATTERN_MAX &&
                  strlen(ret->pattern) == n;
}

static bool is_word(struct span word, const char *option) {
  return word.len == strlen(option) &&
         strncasecmp(word.text, option, word.len) == 0;
}

/* The option that the last string belongs to, or NULL: that of another option,
 * or the name of ProcessMatch, which comes before its expression. */
static const char *find_option(const struct reader *r) {
  if (is_word(r->word, "ProcessMatch"))
    return r->strings == 2 ? "CommandLineMatch" : NULL;
  if (is_word(r->word, "Process"))
    return "Process";
  for (size_t i = 0; selector_options[i]; i++)
    if (is_word(r->word, selector_options[i]))
      return selector_options[i];
  return NULL;
}

static bool next_selector(struct reader *r, struct found *ret) {
  struct cursor *s = &r->text;

  while (!cursor_is_done(s)) {
    size_t len = strcspn(s->at, " \";<>");

    if (len > 0) {
      r->word = (struct span){s->at, len};
      r->strings = 0;
      s->at += len;
    } else if (*s->at != '"') {
      s->at++;
    } else {
      read_string(s, ret);
      r->strings++;
      ret->option = find_option(r);
      ret->text = (struct span){r->word.text, (size_t)(s->at - r->word.text)};
      if (ret->option)
        return true;
    }
  }
  return false;
}

/* ---- trying selectors ---- */

enum verdict { FAILS, MATCHES, NOT_TRIED };

/* The product of the numbers in braces is small. */
static bool repeats_little(const char *pattern) {
  uint64_t product = 1, number;

  for (const char *at = pattern; (at = strpbrk(at, "{,")); at++) {
    struct cursor s = cursor_begin(at + 1, strlen(at + 1));

    if (parse_u64(&s, &number) && number > 1 &&
        (number > REPEATS_MAX || (product *= number) > REPEATS_MAX))
      return false;
  }
  return true;
}

static enum verdict try(const struct found *f, const struct attributes *id,
                        enum attribute *ret_attribute) {
  struct config_error ignored;
  struct selector s;
  const char *value;
  int rc = -1;

  if (!repeats_little(f->pattern) ||
      selector_init(&s, f->option, f->is_whole ? f->pattern : "/", &ignored) <
          0)
    return NOT_TRIED;
  *ret_attribute = s.attribute;
  value = s.test == SELECT_PID_FILE ? NULL : id->value[s.attribute];
  if (f->is_whole &&
      (value ? strlen(value) <= VALUE_MAX
             : s.test == SELECT_PID_FILE || !is_unknown(id, s.attribute)))
    rc = selector_match(&s, id, 0, NULL);
  selector_done(&s);
  return rc < 0 ? NOT_TRIED : rc > 0 ? MATCHES : FAILS;
}

static void add_failure(const struct found *f, enum attribute attribute,
                        enum verdict verdict, const struct style *s,
                        struct text *t) {
  char *text = memory_format("%.*s", (int)f->text.len, f->text.text);

  text_clear(t);
  text_add_name(t, text, s);
  text_add(t, verdict == NOT_TRIED
                  ? ": not tried here: unknown, cut, or too large"
              : attribute == ATTRIBUTES ? " names another process, or none"
                                        : " does not match");
  free(text);
}

void selectors_explain(const char *rule, const struct process *p,
                       const struct style *s,
                       void (*add)(void *ctx, const char *line), void *ctx) {
  struct attributes id = attributes_of(p);
  bool matches[ATTRIBUTES + 1] = {false};
  struct text t = {0};
  struct found f;
  bool has_any = false;

  for (int round = 0; round < 2; round++) {
    struct reader r = {.text = cursor_begin(rule, strlen(rule))};

    while (next_selector(&r, &f)) {
      enum attribute attribute = ATTRIBUTES;
      enum verdict verdict = try(&f, &id, &attribute);

      if (round == 0) {
        matches[attribute] |= verdict == MATCHES;
      } else if (!matches[attribute]) {
        add_failure(&f, attribute, verdict, s, &t);
        add(ctx, t.bytes);
        has_any = true;
      }
    }
  }
  if (!has_any)
    add(ctx, "its selectors match now; a %{...} of its name may be unknown");
  text_done(&t);
}
