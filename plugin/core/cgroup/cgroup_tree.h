/* SPDX-License-Identifier: MIT */
/*
 * The control groups that processes are in, by path, and those above them. Each
 * lasts as long as a process refers to it.
 */
#ifndef SMAPS_CGROUP_TREE_H
#define SMAPS_CGROUP_TREE_H

#include <smaps/text.h>

struct cgroup_node {
  struct cgroup_node *parent; /* NULL: the root */
  size_t references;          /* of processes and children */
  unsigned depth;             /* 0: the root */
  uint64_t serial;    /* unique, also among later nodes with this path */
  uint64_t processes; /* in it and below; set by cgroup_watch.h */
  char path[];
};

struct cgroup_tree {
  struct cgroup_node **nodes; /* sorted by path: a parent before its children */
  size_t n, cap;
  uint64_t made;
};

/* A path with more components belongs to its ancestor: users can nest control
 * groups as deep as they like. */
#define CGROUP_DEPTH_MAX 32

/* Gets the node of a path, with a reference. NULL without memory. */
struct cgroup_node *cgroup_tree_get(struct cgroup_tree *t, const char *path);

/* Drops a reference; accepts NULL. */
void cgroup_tree_release(struct cgroup_tree *t, struct cgroup_node *node);

void cgroup_tree_done(struct cgroup_tree *t);

#endif
