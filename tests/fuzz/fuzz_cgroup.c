/* SPDX-License-Identifier: MIT */
/* Parses /proc/PID/cgroup, and the attributes in its path. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cgroup/cgroup.h"

static void require_component(struct span part, struct span path) {
  require(fuzz_is_within(part, path));
  require(part.len > 0 && !memchr(part.text, '/', part.len));
}

static void look_at_path(struct span path) {
  struct cgroup_containers containers;
  struct span unit, slice;

  if (cgroup_unit(path, &unit)) {
    require_component(unit, path);
    require(memchr(unit.text, '.', unit.len));
  }
  if (cgroup_slice(path, &slice)) {
    require(slice.len >= 6);
    require(memcmp(slice.text + slice.len - 6, ".slice", 6) == 0);
    if (slice.len != 7 || memcmp(slice.text, "-.slice", 7) != 0)
      require_component(slice, path);
  }
  cgroup_parse_containers(path, &containers);
  require(containers.n <= CGROUP_NESTED_MAX);
  for (size_t i = 0; i < containers.n; i++) {
    const struct cgroup_container *c = &containers.at[i];

    require(c->runtime != CGROUP_NO_CONTAINER && c->end <= path.len);
    require(memchr(c->id, '\0', sizeof(c->id)) && c->name_at <= strlen(c->id));
    require(!c->has_digits || strspn(c->id, "0123456789abcdef") == 64);
  }
}

static void look_for_memory(const char *text, size_t size) {
  struct span path;
  bool is_v1;
  int rc;

  fuzz_taint(&path, sizeof(path));
  rc = cgroup_parse_memory(text, size, &is_v1, &path);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0)
    fuzz_require_untouched(&path, sizeof(path));
  else
    require(fuzz_is_within(path, (struct span){text, size}) && path.len > 0 &&
            path.text[0] == '/');
}

static void look_for_key(const char *text, size_t size) {
  uint64_t value = 4711;

  if (!cgroup_parse_keyed((struct span){text, size}, "oom_kill", &value))
    require(value == 4711);
  value = 4711;
  if (!cgroup_parse_pressure((struct span){text, size}, "some", &value))
    require(value == 4711);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = fuzz_copy(data, size);
  struct span path;
  int rc;

  fuzz_taint(&path, sizeof(path));
  rc = cgroup_parse(text, size, &path);
  require(rc == 0 || rc == -EBADMSG);
  if (rc != 0) {
    fuzz_require_untouched(&path, sizeof(path));
  } else {
    require(fuzz_is_within(path, (struct span){text, size}));
    require(path.len > 0 && path.text[0] == '/');
    require(!memchr(path.text, '\n', path.len));
    look_at_path(path);
  }
  look_for_memory(text, size);
  look_for_key(text, size);
  /* Any bytes may be a path. */
  look_at_path((struct span){text, size});
  free(text);
  return 0;
}
