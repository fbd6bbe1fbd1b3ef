/* SPDX-License-Identifier: MIT */
/* The files of container runtimes, some of which belong to users. */
#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/container_file.h"

#define ID "eaef4aa9cb29fbd7a3a0970a963c1d6a91abd5b32348dd83a5d29398383920e5"

static void parse(const char *key, const char *id, const char *text,
                  size_t len) {
  char name[CONTAINER_NAME_SIZE];
  int rc;

  fuzz_taint(name, sizeof(name));
  rc = container_file_parse(key, id, text, len, name);
  require(rc == 0 || rc == -ENOENT || rc == -EBADMSG);
  if (rc == 0)
    require(name[0] && memchr(name, '\0', sizeof(name)));
  else
    fuzz_require_untouched(name, sizeof(name));
}

static void read_setting(const char *text, size_t len) {
  char name[CONTAINER_NAME_SIZE];
  int rc;

  fuzz_taint(name, sizeof(name));
  rc = container_file_setting("root", (struct span){text, len}, name);
  require(rc == 0 || rc == -ENOENT || rc == -EBADMSG);
  if (rc == 0)
    require(name[0] && memchr(name, '\0', sizeof(name)));
  else
    fuzz_require_untouched(name, sizeof(name));
}

static void split(const char *text, size_t len) {
  struct container_names names = {.pod = ""};

  snprintf(names.name, sizeof(names.name), "k8s_%.*s",
           (int)(len < 300 ? len : 300), text);
  container_file_split(&names);
  require(memchr(names.name, '\0', sizeof(names.name)));
}

static void read_link(const char *text, size_t len) {
  struct container_names names;
  char *file = strndup(text, len);

  fuzz_taint(&names, sizeof(names));
  if (container_file_kubelet(file, ID, &names))
    require(memchr(names.name, '\0', CONTAINER_NAME_SIZE) &&
            memchr(names.pod, '\0', CONTAINER_NAME_SIZE) &&
            memchr(names.namespace, '\0', CONTAINER_NAME_SIZE));
  else
    fuzz_require_untouched(&names, sizeof(names));
  free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = fuzz_copy(data, size);

  parse("Name", NULL, text, size);
  parse("names", ID, text, size);
  parse("annotations/name", NULL, text, size);
  read_setting(text, size);
  split(text, size);
  read_link(text, size);
  free(text);
  return 0;
}
