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
};

static uint64_t cap(uint64_t n) { return n < UINT32_MAX ? n : UINT32_MAX; }

static void add_piece(struct level *l, uint64_t size) {
  l->before = cap(l->before + l->last);
  l->last = cap(size);
}

/* How often "{m,n}" has its piece written; 1 for what is no interval. */
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

static void repeat(struct level *l, const char *p) {
  if (*p == '+')
    l->last = cap(2 * l->last);
  else if (*p == '{')
    l->last = cap(l->last * count_interval(p));
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
  struct level levels[PATTERN_DEPTH_MAX + 1] = {{0, 0}};
  uint64_t size = 0;
  size_t depth = 0;

  for (const char *p = regex; *p; p = skip(p)) {
    struct level *l = &levels[depth];

    if (strchr("*?+{", *p)) {
      repeat(l, p);
    } else if (*p == '(') {
      if (++depth > PATTERN_DEPTH_MAX)
        return true;
      levels[depth] = (struct level){0, 0};
    } else if (*p == ')' && depth > 0) {
      add_piece(&levels[--depth], l->before + l->last + 1);
    } else {
      add_piece(l, 1);
    }
  }
  for (size_t i = 0; i <= depth; i++)
    size += levels[i].before + levels[i].last;
  return size > PATTERN_REPEATED_MAX + strlen(regex);
}
