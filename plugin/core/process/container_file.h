/* SPDX-License-Identifier: MIT */
/*
 * Files of container runtimes, which have the names of containers. Some of
 * these files belong to users, so their text is not trusted.
 */
#ifndef SMAPS_CONTAINER_FILE_H
#define SMAPS_CONTAINER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <smaps/text.h>

#define CONTAINER_NAME_SIZE 256

/* Empty: unknown. Whoever starts a container may choose any bytes. */
struct container_names {
  char name[CONTAINER_NAME_SIZE];
  char pod[CONTAINER_NAME_SIZE];
  char namespace[CONTAINER_NAME_SIZE];
};

/*
 * Finds the string of a key in a JSON object, or of "annotations/KEY" in the
 * objects in it; or, with an id, in an array of objects, in the object with
 * that "id", the first string of the key's array. -ENOENT if there is none,
 * -EBADMSG if the text is malformed, or the string is empty, does not fit or
 * has a NUL in it; -ENOMEM.
 */
int container_file_parse(const char *key, const char *id, const char *text,
                         size_t len, char ret[CONTAINER_NAME_SIZE]);

/* Finds the value of a line KEY = "VALUE" (TOML). As above, but any text that
 * lacks the key is well-formed. */
int container_file_setting(const char *key, struct span text,
                           char ret[CONTAINER_NAME_SIZE]);

/* Parses the name of kubelet's link: POD_NAMESPACE_CONTAINER-ID.log, cut before
 * ".log" if it is too long for a file name. False if it is of another
 * container. */
bool container_file_kubelet(const char *file, const char *id,
                            struct container_names *ret);

/* Parses a name that Docker and CRI-O have from kubelet:
 * k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT. The container that holds a pod
 * together is called POD, and gets no pod, so that those of all pods are one.
 * False, and *names unchanged, for other names. */
bool container_file_split(struct container_names *names);

#endif
