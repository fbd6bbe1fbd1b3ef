/* SPDX-License-Identifier: MIT */
#include "cgroup/cgroup_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int compare(const void *key, const void *element) {
  const struct cgroup_node *node = *(struct cgroup_node *const *)element;
  const struct span *path = key;
  int order = strncmp(path->text, node->path, path->len);

  return order != 0 ? order : -(node->path[path->len] != '\0');
}

/* The index of the path, or the index to insert it at. */
static size_t find(const struct cgroup_tree *t, struct span path,
                   bool *ret_found) {
  return array_find(t->nodes, t->n, sizeof(*t->nodes), &path, compare,
                    ret_found);
}

/* The path of the parent; that of the root is "/". */
static struct span above(struct span path) {
  while (path.len > 1 && path.text[--path.len] != '/')
    ;
  return path;
}

static struct cgroup_node *get(struct cgroup_tree *t, struct span path) {
  struct cgroup_node *node, **nodes, *parent = NULL;
  bool is_found;
  size_t at = find(t, path, &is_found);

  if (is_found) {
    t->nodes[at]->references++;
    return t->nodes[at];
  }
  if (path.len > 1 && !(parent = get(t, above(path))))
    return NULL;
  at = find(t, path, &is_found); /* behind its parent, which may be new */
  node = malloc(sizeof(*node) + path.len + 1);
  nodes =
      node ? array_insert(t->nodes, &t->n, &t->cap, sizeof(*nodes), at) : NULL;
  if (!nodes) {
    free(node);
    cgroup_tree_release(t, parent);
    return NULL;
  }
  t->nodes = nodes;
  nodes[at] = node;
  *node = (struct cgroup_node){.parent = parent,
                               .references = 1,
                               .depth = parent ? parent->depth + 1 : 0,
                               .serial = ++t->made};
  memcpy(node->path, path.text, path.len);
  node->path[path.len] = '\0';
  return node;
}

struct cgroup_node *cgroup_tree_get(struct cgroup_tree *t, const char *path) {
  struct span s = {.text = path, .len = strlen(path)};
  unsigned depth = 1;

  for (size_t i = 1; i < s.len; i++)
    if (path[i] == '/' && depth++ == CGROUP_DEPTH_MAX)
      s.len = i;
  return get(t, s);
}

void cgroup_tree_release(struct cgroup_tree *t, struct cgroup_node *node) {
  while (node && --node->references == 0) {
    struct span path = {.text = node->path, .len = strlen(node->path)};
    struct cgroup_node *parent = node->parent;
    bool is_found;

    array_remove(t->nodes, &t->n, sizeof(*t->nodes), find(t, path, &is_found));
    free(node);
    node = parent;
  }
}

void cgroup_tree_done(struct cgroup_tree *t) {
  for (size_t i = 0; i < t->n; i++)
    free(t->nodes[i]);
  free(t->nodes);
  *t = (struct cgroup_tree){0};
}
