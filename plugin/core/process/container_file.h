/*
 * What container runtimes write about a container: its name. Some of these
 * files belong to users, so any text may come.
 */
#ifndef SMAPS_CONTAINER_FILE_H
#define SMAPS_CONTAINER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_NAME_SIZE 256

/* Empty: unknown. Else letters, digits, '.', '_' and '-'. */
struct container_names {
  char name[CONTAINER_NAME_SIZE];
  char pod[CONTAINER_NAME_SIZE];
  char namespace[CONTAINER_NAME_SIZE];
};

enum container_format {
  CONTAINER_DOCKER,      /* config.v2.json: "Name", without its slash */
  CONTAINER_DOCKER_ROOT, /* daemon.json: "data-root", an absolute path */
  CONTAINER_PODMAN,      /* containers.json: the first of the "names" of `id` */
};

/* Finds the name in a JSON text. -ENOENT if there is none, -EBADMSG if the text
 * or the name is malformed, -ENOMEM. */
int container_file_parse(enum container_format format, const char *text,
                         size_t len, const char *id,
                         char ret[CONTAINER_NAME_SIZE]);

/* A link of kubelet's: POD_NAMESPACE_CONTAINER-ID.log, cut before ".log" if it
 * is too long for a file name. False if it is of another container. */
bool container_file_kubelet(const char *file, const char *id,
                            struct container_names *ret);

#endif
