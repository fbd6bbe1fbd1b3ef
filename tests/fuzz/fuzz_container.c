/* The files of container runtimes, some of which belong to users. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process/container_file.h"

#define ID "eaef4aa9cb29fbd7a3a0970a963c1d6a91abd5b32348dd83a5d29398383920e5"

static bool is_name(const char *s) {
  size_t len = strnlen(s, CONTAINER_NAME_SIZE);

  if (len == 0 || len == CONTAINER_NAME_SIZE)
    return false;
  for (size_t i = 0; i < len; i++)
    if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f ||
        s[i] == '/' || s[i] == '%')
      return false;
  return true;
}

static void parse(enum container_format format, const char *text, size_t len) {
  char name[CONTAINER_NAME_SIZE];
  int rc;

  fuzz_taint(name, sizeof(name));
  rc = container_file_parse(format, text, len, ID, name);
  require(rc == 0 || rc == -ENOENT || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(name, sizeof(name));
  else if (format == CONTAINER_DOCKER_ROOT)
    require(name[0] == '/' && memchr(name, '\0', sizeof(name)));
  else
    require(is_name(name));
}

static void read_link(const char *text, size_t len) {
  struct container_names names;
  char *file = strndup(text, len);

  fuzz_taint(&names, sizeof(names));
  if (container_file_kubelet(file, ID, &names))
    require(is_name(names.name) && is_name(names.pod) &&
            is_name(names.namespace));
  else
    fuzz_require_untouched(&names, sizeof(names));
  free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = fuzz_copy(data, size);

  parse(CONTAINER_DOCKER, text, size);
  parse(CONTAINER_DOCKER_ROOT, text, size);
  parse(CONTAINER_PODMAN, text, size);
  read_link(text, size);
  free(text);
  return 0;
}
