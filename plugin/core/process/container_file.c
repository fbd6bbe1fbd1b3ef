#include "process/container_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <yajl/yajl_parse.h>

/* kubelet may have cut the id; at least so many digits are needed. */
#define ID_LEN_LEAST 12

#define ANNOTATIONS "annotations/"

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

/* Ends the search after the wanted object. */
static int on_close(void *ctx) {
  struct search *s = ctx;

  if (s->depth-- != s->level)
    return 1;
  if (s->has_value && s->is_of_id)
    return 0;
  s->is_at_key = false;
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

int container_file_parse(const char *key, const char *id, const char *text,
                         size_t len, char ret[CONTAINER_NAME_SIZE]) {
  static const yajl_callbacks callbacks = {.yajl_string = on_string,
                                           .yajl_start_map = on_open,
                                           .yajl_map_key = on_key,
                                           .yajl_end_map = on_close,
                                           .yajl_start_array = on_open,
                                           .yajl_end_array = on_close};
  bool is_deep = strncmp(key, ANNOTATIONS, strlen(ANNOTATIONS)) == 0;
  struct search s = {.key = key + (is_deep ? strlen(ANNOTATIONS) : 0),
                     .id = id,
                     .level = id || is_deep ? 2 : 1,
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
        !parse_part(&at, at.at[-1], &value) || !value.len ||
        value.len >= CONTAINER_NAME_SIZE || memchr(value.text, '\0', value.len))
      return -EBADMSG;
    snprintf(ret, CONTAINER_NAME_SIZE, "%.*s", (int)value.len, value.text);
    return 0;
  }
  return -ENOENT;
}

bool container_file_kubelet(const char *file, const char *id,
                            struct container_names *ret) {
  const char *namespace = strchr(file, '_');
  const char *name = namespace ? strchr(namespace + 1, '_') : NULL;
  const char *dash = strrchr(file, '-');
  size_t id_len = dash ? strcspn(dash + 1, ".") : 0;

  if (!name || dash < name || id_len < ID_LEN_LEAST ||
      strncmp(dash + 1, id, id_len) != 0 ||
      strcmp(dash + 1 + id_len, ".log") != 0)
    return false;
  snprintf(ret->pod, CONTAINER_NAME_SIZE, "%.*s", (int)(namespace - file),
           file);
  snprintf(ret->namespace, CONTAINER_NAME_SIZE, "%.*s",
           (int)(name - namespace - 1), namespace + 1);
  snprintf(ret->name, CONTAINER_NAME_SIZE, "%.*s", (int)(dash - name - 1),
           name + 1);
  return true;
}

bool container_file_split(struct container_names *names) {
  char copy[CONTAINER_NAME_SIZE], *at = copy, *part[6];
  bool is_sandbox;
  size_t n;

  strcpy(copy, names->name);
  for (n = 0; n < 6 && at; n++)
    part[n] = strsep(&at, "_");
  if (n < 6 || at || strcmp(part[0], "k8s") != 0)
    return false;
  is_sandbox = strcmp(part[1], "POD") == 0;
  strcpy(names->name, part[1]);
  strcpy(names->pod, is_sandbox ? "" : part[2]);
  strcpy(names->namespace, is_sandbox ? "" : part[3]);
  return true;
}
