#include "config/pattern.h"

#include <stdint.h>
#include <string.h>

#include <smaps/text.h>

const char *pattern_set_end(const char *p, bool is_glob) {
  if (*p == '^' || (is_glob && *p == '!'))
    p++;
  if (*p == ']')
    p++;
  for (; *p && *p != ']'; p++) {
    const char *class_end;
    char kind = p[1];

    if (is_glob && *p == '\\' && kind) {
      p++;
      continue;
    }
    if (*p != '[' || !kind || !strchr(":.=", kind))
      continue;
    class_end = strchr(p + 2, kind);
    if (class_end && class_end[1] == ']')
      p = class_end + 1;
  }
  return *p ? p : NULL;
}

bool pattern_has_back_reference(const char *p) {
  for (; *p; p++) {
    if (*p == '[' && !(p = pattern_set_end(p + 1, false)))
      return false;
    if (*p != '\\')
      continue;
    if (p[1] >= '1' && p[1] <= '9')
      return true;
    p += p[1] != '\0';
  }
  return false;
}

/* --- repetitions --- */

/* Written out: an expression in parentheses, as far as it was read. */
struct level {
  uint64_t before, last; /* its last piece, and all before that */
  /* That piece, or any, has a part that can be empty. */
  bool is_last_optional, is_optional;
};

static uint64_t cap(uint64_t n) { return n < UINT32_MAX ? n : UINT32_MAX; }

static void add_piece(struct level *l, uint64_t size, bool is_optional) {
  l->before = cap(l->before + l->last);
  l->last = cap(size);
  l->is_last_optional = is_optional;
  l->is_optional |= is_optional;
}

/* The copies that "{m,n}" makes of its piece; 1 if it is no interval. */
static uint64_t count_interval(const char *p) {
  struct cursor c = {.at = p + 1, .end = p + strlen(p)};
  uint64_t least = 0, most = 0;

  if (!parse_u64(&c, &least) && *c.at >= '0' && *c.at <= '9')
    return UINT32_MAX; /* more than fits */
  if (parse_char(&c, ',') && !parse_u64(&c, &most))
    most = least + 1; /* "{m,}" */
  most = most > least ? most : least;
  return most > 1 ? cap(most) : 1;
}

/* Repeated parts that can be empty take a time that grows with their power, and
 * not with their number. */
static uint64_t weigh(uint64_t times, bool is_optional) {
  return is_optional ? cap(times * times * times) : times;
}

static void repeat(struct level *l, const char *p) {
  uint64_t times = *p == '+' ? 2 : *p == '{' ? count_interval(p) : 1;

  l->last = cap(l->last * weigh(times, l->is_last_optional));
  if (*p == '*' || *p == '?' || (*p == '{' && (p[1] == '0' || p[1] == ',')))
    l->is_last_optional = l->is_optional = true;
}

/* Behind an interval, a set or an escaped character. */
static const char *skip(const char *p) {
  const char *end = NULL;

  if (*p == '[')
    end = pattern_set_end(p + 1, false);
  else if (*p == '{')
    end = strchr(p, '}');
  else if (*p == '\\' && p[1])
    end = p + 1;
  return (end ? end : p) + 1;
}

bool pattern_repeats_too_much(const char *regex) {
  struct level levels[PATTERN_DEPTH_MAX + 1] = {{.before = 0}};
  uint64_t size = 0;
  size_t depth = 0;

  for (const char *p = regex; *p; p = skip(p)) {
    struct level *l = &levels[depth];

    if (strchr("*?+{", *p)) {
      repeat(l, p);
    } else if (*p == '(') {
      if (++depth > PATTERN_DEPTH_MAX)
        return true;
      levels[depth] = (struct level){.before = 0};
    } else if (*p == ')' && depth > 0) {
      bool is_optional = l->is_optional || l->before + l->last == 0;

      add_piece(&levels[--depth], l->before + l->last + 1, is_optional);
    } else {
      add_piece(l, 1, strchr("|^$", *p) != NULL);
    }
  }
  for (size_t i = 0; i <= depth; i++)
    size += levels[i].before + levels[i].last;
  return size > PATTERN_REPEATED_MAX + strlen(regex);
}
