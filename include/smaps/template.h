/*
 * Group names with placeholders: "pool-%{1}", "%{unit}". "%%" is a '%'; any
 * other '%' that is not followed by '{' stands for itself.
 */
#ifndef SMAPS_TEMPLATE_H
#define SMAPS_TEMPLATE_H

#include <smaps/identity.h>
#include <smaps/name.h>
#include <smaps/reason.h>
#include <smaps/selector.h>

struct template_piece {
  enum {
    PIECE_LITERAL,
    PIECE_ATTRIBUTE,
    PIECE_CAPTURE,
  } kind;
  char *literal;
  enum attribute attribute;
  size_t capture; /* 1 … 9 */
};

struct template {
  struct template_piece *pieces;
  size_t n;
};

/* -EINVAL with what was expected in *reason, or -ENOMEM. */
int template_init(struct template *t, const char *text, struct reason *reason);
void template_done(struct template *t);

/* Whether it has no placeholder. */
bool template_is_fixed(const struct template *t);

/* Bit per enum attribute that a placeholder names. */
unsigned template_attributes(const struct template *t);

/* The highest capture that a placeholder names, or 0. */
size_t template_captures(const struct template *t);

/*
 * Makes the name. False where a placeholder has no value for this process or
 * the name comes out empty: the process then is none of that group's.
 */
bool template_expand(const struct template *t, const struct identity *id,
                     const struct captures *captures, struct name *ret);

#endif
