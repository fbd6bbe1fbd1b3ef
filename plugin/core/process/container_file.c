#include "process/container_file.h"

#include <errno.h>
#include <string.h>

#include <yajl/yajl_parse.h>

/* kubelet may have cut the id: this much of it has to be there. */
#define ID_LEN_LEAST 12

/* Looks in an object for the string of a key, or the first one of its array. */
struct search {
  const char *key;
  const char *id; /* of the object, in the top array; NULL: the top object */
  int level;      /* depth of that object */
  int depth;
  bool is_at_key, is_at_id;
  bool is_of_id, has_value;
  char value[CONTAINER_NAME_SIZE]; /* empty if it does not fit */
};

static int on_open(void *ctx) {
  struct search *s = ctx;

  s->depth++;
  return 1;
}

/* Ends the search behind the object that was meant. */
static int on_close(void *ctx) {
  struct search *s = ctx;

  if (s->depth-- != s->level)
    return 1;
  if (s->has_value && s->is_of_id)
    return 0;
  s->has_value = false;
  s->is_of_id = !s->id;
  return 1;
}

static bool is_word(const unsigned char *text, size_t len, const char *word) {
  return strlen(word) == len && memcmp(text, word, len) == 0;
}

static int on_key(void *ctx, const unsigned char *text, size_t len) {
  struct search *s = ctx;

  if (s->depth != s->level)
    return 1;
  s->is_at_key = is_word(text, len, s->key);
  s->is_at_id = s->id && is_word(text, len, "id");
  return 1;
}

static int on_string(void *ctx, const unsigned char *text, size_t len) {
  struct search *s = ctx;
  bool fits = len < sizeof(s->value) && !memchr(text, '\0', len);

  if (s->is_at_id && s->depth == s->level)
    s->is_of_id = is_word(text, len, s->id);
  if (!s->is_at_key || s->has_value || s->depth != s->level + (s->id ? 1 : 0))
    return 1;
  s->has_value = true;
  memcpy(s->value, text, fits ? len : 0);
  s->value[fits ? len : 0] = '\0';
  return 1;
}

static int find(struct search *s, const char *text, size_t len) {
  static const yajl_callbacks callbacks = {.yajl_string = on_string,
                                           .yajl_start_map = on_open,
                                           .yajl_map_key = on_key,
                                           .yajl_end_map = on_close,
                                           .yajl_start_array = on_open,
                                           .yajl_end_array = on_close};
  yajl_handle parser = yajl_alloc(&callbacks, NULL, s);
  yajl_status status;

  if (!parser)
    return -ENOMEM;
  status = yajl_parse(parser, (const unsigned char *)text, len);
  if (status == yajl_status_ok)
    status = yajl_complete_parse(parser);
  yajl_free(parser);
  if (status == yajl_status_client_canceled)
    return 0;
  return status == yajl_status_ok ? -ENOENT : -EBADMSG;
}

static bool is_name(const char *s) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789._-";

  return *s && s[strspn(s, letters)] == '\0';
}

int container_file_parse(enum container_format format, const char *text,
                         size_t len, const char *id,
                         char ret[CONTAINER_NAME_SIZE]) {
  static const char *const keys[] = {[CONTAINER_DOCKER] = "Name",
                                     [CONTAINER_DOCKER_ROOT] = "data-root",
                                     [CONTAINER_PODMAN] = "names"};
  bool is_list = format == CONTAINER_PODMAN;
  struct search s = {.key = keys[format],
                     .id = is_list ? id : NULL,
                     .level = is_list ? 2 : 1,
                     .is_of_id = !is_list};
  const char *name = s.value + (format == CONTAINER_DOCKER);
  /* Podman takes an empty file for an empty list. */
  int rc = len == 0 && is_list ? -ENOENT : find(&s, text, len);

  if (rc != 0)
    return rc;
  if ((!is_list && s.value[0] != '/') ||
      (format != CONTAINER_DOCKER_ROOT && !is_name(name)))
    return -EBADMSG;
  strcpy(ret, name);
  return 0;
}

/* Copies the text up to the end, if it is a name. */
static bool take(const char *text, const char *end,
                 char ret[CONTAINER_NAME_SIZE]) {
  if (!end || end - text >= CONTAINER_NAME_SIZE)
    return false;
  memcpy(ret, text, (size_t)(end - text));
  ret[end - text] = '\0';
  return is_name(ret);
}

bool container_file_kubelet(const char *file, const char *id,
                            struct container_names *ret) {
  const char *pod_end = strchr(file, '_');
  const char *namespace_end = pod_end ? strchr(pod_end + 1, '_') : NULL;
  const char *dash = strrchr(file, '-');
  size_t id_len = dash ? strcspn(dash + 1, ".") : 0;
  struct container_names names;

  if (!namespace_end || dash < namespace_end || id_len < ID_LEN_LEAST ||
      strncmp(dash + 1, id, id_len) != 0 ||
      strcmp(dash + 1 + id_len, ".log") != 0)
    return false;
  if (!take(file, pod_end, names.pod) ||
      !take(pod_end + 1, namespace_end, names.namespace) ||
      !take(namespace_end + 1, dash, names.name))
    return false;
  *ret = names;
  return true;
}
