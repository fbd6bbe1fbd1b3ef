/* SPDX-License-Identifier: MIT */
#include "process/attributes.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup/cgroup.h"

/* The reference count precedes the values, so that no value has offset 0. */
#define HEAD_SIZE sizeof(atomic_uint)

static atomic_uint *references_of(const struct stored_attributes *stored) {
  return (atomic_uint *)(void *)stored->block;
}

struct stored_attributes
attributes_share(const struct stored_attributes *stored) {
  if (stored->block)
    atomic_fetch_add_explicit(references_of(stored), 1, memory_order_relaxed);
  return *stored;
}

struct attributes attributes_get(const struct stored_attributes *stored) {
  struct attributes id = {.uid = stored->uid};

  for (int i = 0; i < ATTRIBUTES; i++)
    if (stored->at[i])
      id.value[i] = stored->block + stored->at[i];
  return id;
}

static bool is_same(const char *old, struct span now) {
  if (!old || !now.text)
    return !old && !now.text;
  return strlen(old) == now.len && memcmp(old, now.text, now.len) == 0;
}

static bool has_changed(const struct stored_attributes *stored,
                        const struct span value[ATTRIBUTES], uint32_t uid) {
  struct attributes old = attributes_get(stored);

  for (int i = 0; i < ATTRIBUTES; i++)
    if (!is_same(old.value[i], value[i]))
      return true;
  return old.uid != uid || !stored->block;
}

static size_t block_size(const struct span value[ATTRIBUTES]) {
  size_t size = HEAD_SIZE;

  for (int i = 0; i < ATTRIBUTES; i++)
    size += value[i].text ? value[i].len + 1 : 0;
  return size;
}

void attributes_set_cgroup(struct span value[ATTRIBUTES], struct span path,
                           struct cgroup_containers *containers) {
  const char *id;

  value[ATTRIBUTE_CGROUP] = path;
  cgroup_unit(path, &value[ATTRIBUTE_UNIT]);
  cgroup_slice(path, &value[ATTRIBUTE_SLICE]);
  cgroup_parse_containers(path, containers);
  if (containers->n == 0)
    return;
  id = containers->at[containers->n - 1].id;
  value[ATTRIBUTE_CONTAINER] = (struct span){.text = id, .len = strlen(id)};
}

int attributes_renew(const struct stored_attributes *old,
                     const struct span value[ATTRIBUTES], uint32_t uid,
                     struct stored_attributes *ret) {
  struct stored_attributes next = {.uid = uid};
  size_t at = HEAD_SIZE, size = block_size(value);

  if (!has_changed(old, value, uid))
    return 0;
  if (size > UINT16_MAX)
    return -E2BIG;
  next.block = malloc(size);
  if (!next.block)
    return -ENOMEM;
  atomic_init(references_of(&next), 1);
  for (int i = 0; i < ATTRIBUTES; i++) {
    if (!value[i].text)
      continue;
    next.at[i] = (uint16_t)at;
    memcpy(next.block + at, value[i].text, value[i].len);
    at += value[i].len;
    next.block[at++] = '\0';
  }
  assert(at == size);
  *ret = next;
  return ATTRIBUTES_CHANGED;
}

void attributes_done(struct stored_attributes *stored) {
  if (stored->block && atomic_fetch_sub(references_of(stored), 1) == 1)
    free(stored->block);
  *stored = (struct stored_attributes){0};
}
