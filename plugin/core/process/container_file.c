/* SPDX-License-Identifier: MIT */
#include "process/container_file.h"

#include <errno.h>
#include <string.h>

#include <yajl/yajl_parse.h>

/* kubelet may have cut the id; at least so many digits are needed. */
#define ID_LEN_LEAST 12

static bool copy_name(struct span text, char ret[CONTAINER_NAME_SIZE]) {
  if (text.len == 0 || text.len >= CONTAINER_NAME_SIZE ||
      memchr(text.text, '\0', text.len))
    return false;
  memcpy(ret, text.text, text.len);
  ret[text.len] = '\0';
  return true;
}

/* Looks in an object for the string of a key, or the first one of its array. */
struct search {
  const char *key;
  const char *id; /* of the object, in the top array; NULL: the top object */
  int level;      /* depth of that object */
  int depth;
  enum { AT_OTHER, AT_KEY, AT_ID } at;
  bool is_of_id, has_value;
  char value[CONTAINER_NAME_SIZE]; /* empty if it is unusable */
};

static int on_open(void *ctx) {
  struct search *s = ctx;

  s->depth++;
  return 1;
}

/* Ends the search after the wanted object. */
static int on_close(void *ctx) {
  struct search *s = ctx;

  if (s->depth-- != s->level)
    return 1;
  if (s->has_value && s->is_of_id)
    return 0;
  s->at = AT_OTHER;
  s->has_value = false;
  s->is_of_id = !s->id;
  return 1;
}

static int on_key(void *ctx, const unsigned char *text, size_t len) {
  struct span key = {(const char *)text, len};
  struct search *s = ctx;

  if (s->depth != s->level)
    return 1;
  s->at = s->id && span_is(key, "id") ? AT_ID : AT_OTHER;
  if (span_is(key, s->key))
    s->at = AT_KEY;
  return 1;
}

static int on_string(void *ctx, const unsigned char *text, size_t len) {
  struct span value = {(const char *)text, len};
  struct search *s = ctx;

  if (s->at == AT_ID && s->depth == s->level)
    s->is_of_id = span_is(value, s->id);
  if (s->at != AT_KEY || s->has_value || s->depth != s->level + !!s->id)
    return 1;
  s->has_value = true;
  if (!copy_name(value, s->value))
    s->value[0] = '\0';
  return 1;
}

int container_file_parse(const char *key, const char *id, const char *text,
                         size_t len, char ret[CONTAINER_NAME_SIZE]) {
  static const yajl_callbacks callbacks = {.yajl_string = on_string,
                                           .yajl_start_map = on_open,
                                           .yajl_map_key = on_key,
                                           .yajl_end_map = on_close,
                                           .yajl_start_array = on_open,
                                           .yajl_end_array = on_close};
  const char *slash = strchr(key, '/');
  struct search s = {.key = slash ? slash + 1 : key,
                     .id = id,
                     .level = id || slash ? 2 : 1,
                     .is_of_id = !id};
  yajl_handle parser;
  yajl_status status;

  if (len == 0 && id) /* Podman takes an empty file for an empty list */
    return -ENOENT;
  parser = yajl_alloc(&callbacks, NULL, &s);
  if (!parser)
    return -ENOMEM;
  status = yajl_parse(parser, (const unsigned char *)text, len);
  if (status == yajl_status_ok)
    status = yajl_complete_parse(parser);
  yajl_free(parser);
  if (status == yajl_status_ok)
    return -ENOENT;
  if (status != yajl_status_client_canceled || !s.value[0])
    return -EBADMSG;
  strcpy(ret, s.value);
  return 0;
}

int container_file_setting(const char *key, struct span text,
                           char ret[CONTAINER_NAME_SIZE]) {
  struct cursor s = cursor_begin(text.text, text.len), at;
  struct span line, value;

  while (parse_line(&s, &line)) {
    at = cursor_begin(line.text, line.len);
    skip_blanks(&at);
    if (!parse_word(&at, key) || (skip_blanks(&at), !parse_char(&at, '=')))
      continue;
    skip_blanks(&at);
    if ((!parse_char(&at, '"') && !parse_char(&at, '\'')) ||
        !parse_part(&at, at.at[-1], &value) || !copy_name(value, ret))
      return -EBADMSG;
    return 0;
  }
  return -ENOENT;
}

bool container_file_kubelet(const char *file, const char *id,
                            struct container_names *ret) {
  struct container_names found = {.name = ""};
  const char *dash = strrchr(file, '-');
  size_t id_len = dash ? strcspn(dash + 1, ".") : 0;
  struct cursor s = {file, dash};
  struct span pod, namespace;

  if (id_len < ID_LEN_LEAST || strncmp(dash + 1, id, id_len) != 0 ||
      strcmp(dash + 1 + id_len, ".log") != 0 || !parse_part(&s, '_', &pod) ||
      !parse_part(&s, '_', &namespace) || !copy_name(pod, found.pod) ||
      !copy_name(namespace, found.namespace) ||
      !copy_name((struct span){s.at, (size_t)(s.end - s.at)}, found.name))
    return false;
  *ret = found;
  return true;
}

bool container_file_split(struct container_names *names) {
  struct cursor s = cursor_begin(names->name, strlen(names->name));
  struct container_names found = {.name = ""};
  struct span part[6] = {{NULL, 0}};

  for (size_t i = 0; i < 6; i++)
    if (!parse_part(&s, '_', &part[i]))
      return false;
  if (!cursor_is_done(&s) || !span_is(part[0], "k8s") ||
      !copy_name(part[1], found.name))
    return false;
  if (!span_is(part[1], "POD") &&
      (!copy_name(part[2], found.pod) || !copy_name(part[3], found.namespace)))
    return false;
  *names = found;
  return true;
}
