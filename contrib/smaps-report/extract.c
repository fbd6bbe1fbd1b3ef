#include "extract.h"
#include "memory.h"

#include <smaps/group_name.h>

#include <dirent.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define DEPTH_MAX 8
#define FILE_MAX ((size_t)16 << 20)

/* ---- lines ---- */

/* A line; strings and backslashes may join several lines into one. */
struct statement {
  struct span raw;
  enum { PLAIN, OPEN, CLOSE } kind;
  struct span key;
  char value[PATH_MAX]; /* the first argument; "" if there is none */
};

static size_t string_length(const char *text, const char *end) {
  const char *at = text + 1;

  while (at < end && *at != '"')
    at += *at == '\\' && at + 1 < end ? 2 : 1;
  return (size_t)((at < end ? at + 1 : end) - text);
}

static const char *comment_end(const char *at, const char *end) {
  while (at < end && *at != '\n')
    at++;
  return at;
}

/* The end of the line. A newline in a string or after a backslash does not end
 * it. */
static const char *line_end(const char *at, const char *end) {
  while (at < end && *at != '\n') {
    if (*at == '#')
      at = comment_end(at, end);
    else if (*at == '"')
      at += string_length(at, end);
    else
      at += *at == '\\' && at + 1 < end ? 2 : 1;
  }
  return at < end ? at + 1 : end;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

static void skip_spaces(struct cursor *s) {
  while (!cursor_is_done(s) &&
         (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
    s->at++;
}

static struct span parse_plain_word(struct cursor *s) {
  const char *start = s->at;

  while (!cursor_is_done(s) && is_word(*s->at))
    s->at++;
  return (struct span){.text = start, .len = (size_t)(s->at - start)};
}

/* Copies an argument without quotes and backslashes, cut to `size`. */
static void parse_value(struct cursor *s, char *ret, size_t size) {
  const char *end = s->end;
  size_t len = 0;
  bool is_quoted = !cursor_is_done(s) && *s->at == '"';

  if (is_quoted) {
    end = s->at + string_length(s->at, s->end);
    s->at++;
  }
  for (; s->at < end && len + 1 < size; s->at++) {
    if (is_quoted ? *s->at == '"' : strchr(" \t\r\n>#\"", *s->at) != NULL)
      break;
    if (is_quoted && *s->at == '\\' && s->at + 1 < end)
      s->at++;
    ret[len++] = *s->at;
  }
  ret[len] = '\0';
}

static bool parse_statement(struct cursor *text, struct statement *ret) {
  struct cursor s;

  if (cursor_is_done(text))
    return false;
  ret->raw.text = text->at;
  text->at = line_end(text->at, text->end);
  ret->raw.len = (size_t)(text->at - ret->raw.text);
  s = cursor_begin(ret->raw.text, ret->raw.len);
  skip_spaces(&s);
  ret->kind = !parse_char(&s, '<') ? PLAIN : parse_char(&s, '/') ? CLOSE : OPEN;
  skip_spaces(&s);
  ret->key = parse_plain_word(&s);
  skip_spaces(&s);
  parse_value(&s, ret->value, sizeof(ret->value));
  return true;
}

static bool is_key(const struct statement *st, const char *key) {
  return st->key.len == strlen(key) &&
         strncasecmp(st->key.text, key, st->key.len) == 0;
}

/* ---- blocks ---- */

struct extract {
  enum extract_what what;
  const char *source;
  size_t line; /* of the statement */
  FILE *out;
  unsigned depth; /* of open blocks */
  enum { OTHER, SMAPS, CAPTURE, INCLUDE } in;
  char pattern[PATH_MAX]; /* of the <Include> that is open */
  char filter[PATH_MAX];
  int (*include)(void *context, const char *pattern, const char *filter);
  void *context;
};

static void copy(struct extract *e, enum extract_what what,
                 const struct statement *st) {
  if (e->what != what)
    return;
  fwrite(st->raw.text, 1, st->raw.len, e->out);
  if (st->raw.len > 0 && st->raw.text[st->raw.len - 1] != '\n')
    fputc('\n', e->out);
}

/* An option with a quoted string keeps no backslash but a doubled one. */
static void write_quoted(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '\\')
      fputc('\\', out);
    fputc(*text, out);
  }
}

/* The rest of the line goes with the name: it is a comment, or collectd would
 * refuse it. */
static void begin_named(struct extract *e) {
  char source[PATH_MAX];

  escape_text(e->source, strlen(e->source), source, sizeof(source));
  fprintf(e->out, EXTRACT_MARK " %zu %s\n<Plugin smaps \"", e->line, source);
  write_quoted(e->out, source);
  fputs("\">\n", e->out);
}

static void begin_block(struct extract *e, const struct statement *st) {
  e->in = SMAPS;
  if (e->what == EXTRACT_NAMED)
    begin_named(e);
  copy(e, EXTRACT_BLOCKS, st);
}

static int at_top(struct extract *e, const struct statement *st) {
  if (st->kind == OPEN && is_key(st, "Include")) {
    e->in = INCLUDE;
    memcpy(e->pattern, st->value, sizeof(e->pattern));
    e->filter[0] = '\0';
  } else if (st->kind == OPEN) {
    e->in = OTHER;
    if (is_key(st, "Plugin") && strcasecmp(st->value, "smaps") == 0)
      begin_block(e, st);
  } else if (is_key(st, "Include")) {
    return e->include(e->context, st->value, NULL);
  } else if (is_key(st, "Hostname") || is_key(st, "PluginDir") ||
             is_key(st, "TypesDB")) {
    copy(e, EXTRACT_GLOBALS, st);
  }
  e->depth += st->kind == OPEN;
  return 0;
}

static void in_smaps(struct extract *e, const struct statement *st) {
  bool is_dropped = e->depth == 1 && st->kind == PLAIN &&
                    (is_key(st, "StateFile") || is_key(st, "StateInterval") ||
                     is_key(st, "StateAtStart"));

  if (e->what == EXTRACT_NAMED)
    copy(e, EXTRACT_NAMED, st);
  else if (e->depth == 1 && st->kind == OPEN && is_key(st, "Capture"))
    e->in = CAPTURE;
  else if (!is_dropped)
    copy(e, EXTRACT_BLOCKS, st);
}

static int in_block(struct extract *e, const struct statement *st) {
  if (e->in == SMAPS)
    in_smaps(e, st);
  else if (e->in == CAPTURE && e->depth == 2 && st->kind == CLOSE)
    e->in = SMAPS;
  else if (e->in == INCLUDE && st->kind == PLAIN && is_key(st, "Filter"))
    memcpy(e->filter, st->value, sizeof(e->filter));
  if (st->kind == OPEN)
    e->depth++;
  if (st->kind != CLOSE)
    return 0;
  e->depth--;
  if (e->depth > 0 || e->in != INCLUDE)
    return 0;
  return e->include(e->context, e->pattern, e->filter[0] ? e->filter : NULL);
}

static size_t count_lines(struct span text) {
  size_t n = 0;

  for (size_t i = 0; i < text.len; i++)
    n += text.text[i] == '\n';
  return n;
}

int extract_text(struct span text, const char *source, enum extract_what what,
                 FILE *out,
                 int (*include)(void *context, const char *pattern,
                                const char *filter),
                 void *context) {
  struct extract *e = memory_array(NULL, 1, sizeof(*e));
  struct statement *st = memory_array(NULL, 1, sizeof(*st));
  struct cursor s = cursor_begin(text.text, text.len);
  int rc = 0;

  memset(e, 0, sizeof(*e));
  e->what = what;
  e->source = source;
  e->line = 1;
  e->out = out;
  e->include = include;
  e->context = context;
  while (rc >= 0 && parse_statement(&s, st)) {
    rc = e->depth == 0 ? at_top(e, st) : in_block(e, st);
    e->line += count_lines(st->raw);
  }
  /* A block without an end is a mistake, which collectd will report. But it
   * would run into the next file's blocks, and be reported there. */
  if (rc == 0 && what == EXTRACT_NAMED && e->depth > 0 && e->in == SMAPS)
    rc = -EBADMSG;
  free(e);
  free(st);
  return rc;
}

/* ---- files ---- */

struct files {
  enum extract_what what;
  FILE *out;
  unsigned depth;
  struct config_error *reason;
};

static int add_path(struct files *f, const char *path, const char *filter);

static int refuse(struct files *f, const char *path, int error,
                  const char *words) {
  struct group_name shown;

  config_error_format(
      f->reason, "%s: %s",
      escape_text(path, strlen(path), shown.text, GROUP_NAME_SIZE), words);
  return -error;
}

static int refuse_error(struct files *f, const char *path, int error) {
  return refuse(f, path, error, strerror(error));
}

static int include(void *context, const char *pattern, const char *filter) {
  struct files *f = context;
  glob_t found;
  int rc = 0;

  /* glob(3) expands patterns; wordexp(3) would also run commands. */
  if (glob(pattern, 0, NULL, &found) != 0)
    return 0;
  for (size_t i = 0; i < found.gl_pathc && rc >= 0; i++)
    rc = add_path(f, found.gl_pathv[i], filter);
  globfree(&found);
  return rc;
}

/* A file of more than FILE_MAX is read to somewhere behind that. */
static char *read_all(FILE *file, size_t *ret_len) {
  size_t size = (size_t)1 << 16, len = 0;
  char *text = memory_array(NULL, size + 1, 1);

  while (len <= FILE_MAX) {
    size_t n = fread(text + len, 1, size - len, file);

    len += n;
    if (n == 0)
      break;
    if (len == size) {
      size *= 2;
      text = memory_array(text, size + 1, 1);
    }
  }
  text[len] = '\0';
  *ret_len = len;
  return text;
}

static int extract_bytes(struct files *f, const char *path, struct span text) {
  int rc = extract_text(text, path, f->what, f->out, include, f);

  if (rc != -EBADMSG || *f->reason->text)
    return rc;
  return refuse(f, path, EBADMSG,
                "expected the end of a block of <Plugin smaps> that is open at "
                "the end of the file");
}

static int add_file(struct files *f, const char *path) {
  FILE *file = fopen(path, "re");
  struct span text;
  char *bytes;
  int rc;

  if (!file)
    return refuse_error(f, path, errno);
  bytes = read_all(file, &text.len);
  text.text = bytes;
  if (ferror(file))
    rc = refuse_error(f, path, EIO);
  else if (text.len > FILE_MAX)
    rc = refuse_error(f, path, EFBIG);
  else
    rc = extract_bytes(f, path, text);
  fclose(file);
  free(bytes);
  return rc;
}

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int add_directory(struct files *f, const char *path,
                         const char *filter) {
  struct dirent **entries;
  int n = scandir(path, &entries, is_visible, alphasort);
  int rc = n < 0 ? refuse_error(f, path, errno) : 0;

  for (int i = 0; i < n; i++) {
    size_t size = strlen(path) + strlen(entries[i]->d_name) + 2;
    char *inner = memory_array(NULL, size, 1);

    snprintf(inner, size, "%s/%s", path, entries[i]->d_name);
    if (rc >= 0)
      rc = add_path(f, inner, filter);
    free(inner);
    free(entries[i]);
  }
  if (n >= 0)
    free(entries);
  return rc;
}

static int add_path(struct files *f, const char *path, const char *filter) {
  const char *slash = strrchr(path, '/');
  struct stat st;
  int rc;

  if (f->depth == DEPTH_MAX)
    return refuse_error(f, path, ELOOP);
  if (stat(path, &st) < 0)
    return refuse_error(f, path, errno);
  /* A file is read more than once. */
  if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
    return refuse(f, path, EINVAL, "expected a file, and no pipe");
  f->depth++;
  if (S_ISDIR(st.st_mode))
    rc = add_directory(f, path, filter);
  else if (filter && fnmatch(filter, slash ? slash + 1 : path, 0) != 0)
    rc = 0;
  else
    rc = add_file(f, path);
  f->depth--;
  return rc;
}

int extract_file(const char *path, enum extract_what what, FILE *out,
                 struct config_error *reason) {
  struct files f = {.what = what, .out = out, .reason = reason};

  *reason->text = '\0';
  return add_path(&f, path, NULL);
}
