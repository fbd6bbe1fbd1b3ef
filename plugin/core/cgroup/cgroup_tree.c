#include "cgroup/cgroup_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup/cgroup.h"
#include "proc/array.h"

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

static bool ends_with(struct span path, struct span name) {
  return name.text + name.len == path.text + path.len;
}

static void describe(struct cgroup_node *node, struct span path) {
  struct span name;

  node->is_unit = cgroup_unit(path, &name) && ends_with(path, name);
  node->is_slice = cgroup_slice(path, &name) && ends_with(path, name);
}

/* Adds a node below its parent, whose reference it takes. */
static int add(struct cgroup_tree *t, struct span path,
               struct cgroup_node *parent, struct cgroup_node **ret) {
  struct cgroup_node *node = malloc(sizeof(*node) + path.len + 1), **nodes;
  bool is_found;
  size_t at = find(t, path, &is_found);

  nodes =
      node ? array_insert(t->nodes, &t->n, &t->cap, sizeof(*nodes), at) : NULL;
  if (!nodes) {
    free(node);
    return -ENOMEM;
  }
  t->nodes = nodes;
  nodes[at] = node;
  *node = (struct cgroup_node){.parent = parent,
                               .depth = parent ? parent->depth + 1 : 0,
                               .serial = ++t->made};
  memcpy(node->path, path.text, path.len);
  node->path[path.len] = '\0';
  describe(node, path);
  *ret = node;
  return 0;
}

/* The path to the end of its next component after `len` bytes. */
static size_t next_end(const char *path, size_t len) {
  while (path[len] == '/')
    len++;
  while (path[len] != '/' && path[len] != '\0')
    len++;
  return len;
}

static int get_below(struct cgroup_tree *t, struct span path,
                     struct cgroup_node *parent, struct cgroup_node **ret) {
  bool is_found;
  size_t at = find(t, path, &is_found);
  int rc = 0;

  if (is_found) {
    cgroup_tree_release(t, parent);
    *ret = t->nodes[at];
  } else {
    rc = add(t, path, parent, ret);
  }
  if (rc < 0)
    cgroup_tree_release(t, parent);
  else
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it is not the parent */
    (*ret)->references++;
  return rc;
}

int cgroup_tree_get(struct cgroup_tree *t, const char *path,
                    struct cgroup_node **ret) {
  struct cgroup_node *node = NULL;
  size_t len = 0, end;
  int rc = get_below(t, (struct span){.text = "/", .len = 1}, NULL, &node);

  while (rc == 0 && node->depth < CGROUP_DEPTH_MAX &&
         (end = next_end(path, len)) > len && path[end - 1] != '/') {
    len = end;
    rc = get_below(t, (struct span){.text = path, .len = len}, node, &node);
  }
  if (rc == 0)
    *ret = node;
  return rc;
}

static void remove_node(struct cgroup_tree *t, struct cgroup_node *node) {
  bool is_found;
  size_t at =
      find(t, (struct span){.text = node->path, .len = strlen(node->path)},
           &is_found);

  array_remove(t->nodes, &t->n, sizeof(*t->nodes), at);
  free(node);
}

void cgroup_tree_release(struct cgroup_tree *t, struct cgroup_node *node) {
  while (node && --node->references == 0) {
    struct cgroup_node *parent = node->parent;

    remove_node(t, node);
    node = parent;
  }
}

void cgroup_tree_done(struct cgroup_tree *t) {
  for (size_t i = 0; i < t->n; i++)
    free(t->nodes[i]);
  free(t->nodes);
  *t = (struct cgroup_tree){0};
}
