#include <smaps/identity.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_same(const char *old, struct span now) {
  if (!old || !now.text)
    return !old && !now.text;
  return strlen(old) == now.len && memcmp(old, now.text, now.len) == 0;
}

static bool has_changed(const struct identity *id,
                        const struct span value[ATTRIBUTES], uint32_t uid) {
  for (int i = 0; i < ATTRIBUTES; i++)
    if (!is_same(id->value[i], value[i]))
      return true;
  return id->uid != uid || !id->block;
}

int identity_set(struct identity *id, const struct span value[ATTRIBUTES],
                 uint32_t uid, bool *ret_changed) {
  struct identity next = {.uid = uid};
  size_t size = 1;
  char *at;

  *ret_changed = has_changed(id, value, uid);
  if (!*ret_changed)
    return 0;
  for (int i = 0; i < ATTRIBUTES; i++)
    size += value[i].text ? value[i].len + 1 : 0;
  next.block = at = malloc(size);
  if (!at)
    return -ENOMEM;
  for (int i = 0; i < ATTRIBUTES; i++) {
    if (!value[i].text)
      continue;
    next.value[i] = at;
    memcpy(at, value[i].text, value[i].len);
    at += value[i].len;
    *at++ = '\0';
  }
  identity_done(id);
  *id = next;
  return 0;
}

void identity_done(struct identity *id) {
  free(id->block);
  *id = (struct identity){0};
}
