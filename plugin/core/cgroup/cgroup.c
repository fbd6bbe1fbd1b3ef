/* SPDX-License-Identifier: MIT */
#include "cgroup/cgroup.h"

#include <errno.h>
#include <string.h>

#define ID_LEN 64

/* Only if something is left. */
static bool strip_suffix(struct span *s, const char *suffix) {
  size_t n = strlen(suffix);

  if (s->len <= n || memcmp(s->text + s->len - n, suffix, n) != 0)
    return false;
  s->len -= n;
  return true;
}

static bool has_suffix(struct span s, const char *suffix) {
  return strip_suffix(&s, suffix);
}

static bool next_component(struct cursor *path, struct span *ret) {
  while (parse_char(path, '/'))
    ;
  return parse_part(path, '/', ret);
}

/* The lines that are of use, the best first. In an unused hierarchy all
 * processes are in the root, so any other path says more. */
enum line { LINE_SYSTEMD, LINE_MEMORY, LINE_UNIFIED, LINES };

static enum line line_of(uint32_t id, struct span controllers) {
  struct cursor s = cursor_begin(controllers.text, controllers.len);
  enum line best = id == 0 ? LINE_UNIFIED : LINES;
  struct span name;

  while (parse_part(&s, ',', &name)) {
    if (span_is(name, "name=systemd"))
      return LINE_SYSTEMD;
    if (span_is(name, "memory"))
      best = LINE_MEMORY;
  }
  return best;
}

/*
 * 9:name=systemd:/system.slice/nginx.service
 * 4:cpu,memory:/system.slice/nginx.service
 * 0::/system.slice/nginx.service
 *
 * A line without a newline was cut short and so names another path.
 */
static void parse_paths(const char *text, size_t len,
                        struct span ret[LINES + 1]) {
  struct cursor all = cursor_begin(text, len);
  struct span line, controllers, path;
  uint32_t id;

  while (parse_line(&all, &line) && all.at > line.text + line.len) {
    struct cursor s = cursor_begin(line.text, line.len);

    if (!parse_u32(&s, &id) || !parse_char(&s, ':') ||
        !parse_part(&s, ':', &controllers) || cursor_is_done(&s) ||
        *s.at != '/')
      continue;
    path = (struct span){.text = s.at, .len = (size_t)(s.end - s.at)};
    strip_suffix(&path, " (deleted)");
    if (!ret[line_of(id, controllers)].text)
      ret[line_of(id, controllers)] = path;
  }
}

int cgroup_parse(const char *text, size_t len, struct span *ret) {
  struct span path[LINES + 1] = {{NULL, 0}};

  parse_paths(text, len, path);
  for (size_t least = 2; least > 0; least--)
    for (int i = 0; i < LINES; i++)
      if (path[i].len >= least) {
        *ret = path[i];
        return 0;
      }
  return -EBADMSG;
}

int cgroup_parse_memory(const char *text, size_t len, bool *ret_is_v1,
                        struct span *ret) {
  struct span path[LINES + 1] = {{NULL, 0}};

  parse_paths(text, len, path);
  if (!path[LINE_MEMORY].text && !path[LINE_UNIFIED].text)
    return -EBADMSG;
  *ret_is_v1 = path[LINE_MEMORY].text;
  *ret = path[*ret_is_v1 ? LINE_MEMORY : LINE_UNIFIED];
  return 0;
}

bool cgroup_parse_limit(struct span text, uint64_t *ret_bytes) {
  struct cursor s = cursor_begin(text.text, text.len);
  uint64_t bytes;

  if (!parse_u64(&s, &bytes) || !parse_char(&s, '\n') || !cursor_is_done(&s))
    return false;
  *ret_bytes = bytes;
  return true;
}

bool cgroup_parse_keyed(struct span text, const char *key, uint64_t *ret) {
  struct cursor s = cursor_begin(text.text, text.len);
  struct span line;

  while (parse_line(&s, &line) && s.at > line.text + line.len) {
    struct cursor at = cursor_begin(line.text, line.len);
    uint64_t value;

    if (!parse_word(&at, key) || !parse_char(&at, ' '))
      continue;
    if (!parse_u64(&at, &value) || !cursor_is_done(&at))
      return false;
    *ret = value;
    return true;
  }
  return false;
}

bool cgroup_parse_pressure(struct span text, const char *line,
                           uint64_t *ret_us) {
  struct cursor s = cursor_begin(text.text, text.len);
  struct span found, part;

  while (parse_line(&s, &found) && s.at > found.text + found.len) {
    struct cursor at = cursor_begin(found.text, found.len);

    if (!parse_word(&at, line) || !parse_char(&at, ' '))
      continue;
    while (parse_part(&at, ' ', &part)) {
      struct cursor total = cursor_begin(part.text, part.len);
      uint64_t us;

      if (!parse_word(&total, "total="))
        continue;
      if (!parse_u64(&total, &us) || !cursor_is_done(&total))
        return false;
      *ret_us = us;
      return true;
    }
  }
  return false;
}

struct place {
  struct span slice, unit;
  bool is_relative;
};

static bool is_unit(struct span component) {
  static const char *const suffixes[] = {".service", ".scope", ".socket",
                                         ".mount", ".swap"};

  for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
    if (has_suffix(component, suffixes[i]))
      return true;
  return false;
}

/*
 * /system.slice/system-getty.slice/getty@tty1.service
 * /user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.scope
 * /docker/0123…/system.slice/cron.service
 *
 * The path holds slices, then the unit, then the unit's own subgroups. As in
 * systemd, the component after the slices is the unit or there is none: that
 * cron belongs to the container. Above the root of the reader's own cgroup
 * namespace the kernel prints "/..".
 */
static struct place parse_place(struct span path) {
  struct cursor s = cursor_begin(path.text, path.len);
  struct place place = {0};
  struct span component;

  while (next_component(&s, &component)) {
    if (span_is(component, "..")) {
      place.is_relative = true;
      continue;
    }
    if (component.len > 1 && *component.text == '_')
      component = (struct span){component.text + 1, component.len - 1};
    if (is_unit(component))
      place.unit = component;
    if (!has_suffix(component, ".slice"))
      break;
    place.slice = component;
  }
  return place;
}

bool cgroup_unit(struct span path, struct span *ret) {
  struct place place = parse_place(path);

  if (!place.unit.text)
    return false;
  *ret = place.unit;
  return true;
}

bool cgroup_slice(struct span path, struct span *ret) {
  static const char root[] = "-.slice";
  struct place place = parse_place(path);

  if (place.slice.text)
    *ret = place.slice;
  else if (place.unit.text && !place.is_relative)
    *ret = (struct span){.text = root, .len = sizeof(root) - 1};
  else
    return false;
  return true;
}

/* What a shape finds in a text; the name is in the id, or NULL. */
struct parts {
  const char *id, *name, *end;
};

static bool parse_hex_digits(struct cursor *s, uint64_t n) {
  for (; n > 0 && !cursor_is_done(s) && is_hex_digit(*s->at); n--)
    s->at++;
  return n == 0;
}

/*
 * A shape is a text in which
 *   {8}     stands for so many hexadecimal digits
 *   #       for a decimal number, and P for one above 1
 *   *       for any text, and + for an address; neither is empty
 *   ~       for ".scope", or nothing
 *   (a=b)   for ab, where ab is the id, and b the name in it
 */
static bool parse_shape(const char **shape, struct cursor *s,
                        struct parts *ret) {
  struct cursor count;
  char first = *(*shape)++;
  uint64_t number = 0;

  switch (first) {
  case '(':
    ret->id = s->at;
    return true;
  case '=':
    ret->name = s->at;
    return true;
  case ')':
    ret->end = s->at;
    return true;
  case '~':
    parse_word(s, ".scope");
    return true;
  case '#':
  case 'P':
    return parse_u64(s, &number) && (first == '#' || number > 1);
  case '{':
    count = cursor_begin(*shape, strlen(*shape));
    *shape = parse_u64(&count, &number) ? count.at + 1 : count.end;
    return parse_hex_digits(s, number);
  default:
    return parse_char(s, first);
  }
}

static bool has_shape(const char *shape, struct cursor s, struct parts *ret) {
  while (*shape && *shape != '*' && *shape != '+')
    if (!parse_shape(&shape, &s, ret))
      return false;
  if (!*shape)
    return cursor_is_done(&s);
  while (!cursor_is_done(&s) &&
         (*shape == '*' || is_hex_digit(*s.at) || strchr(".:%", *s.at))) {
    s.at++;
    if (has_shape(shape + 1, s, ret))
      return true;
  }
  return false;
}

/* systemd 228 to 259, src/core/socket.c, instance_from_socket: a connection to
 * a socket with Accept=, by AF_UNIX with the pid, its id and the uid of the
 * peer; newer versions have a cookie behind the counter. A version, a date or
 * an address can look like these; not with a process 0 or 1. The last is a
 * session of Cockpit. */
static const char *const instances[] = {
    "#-+:#-+:#", "#-#-+:#-+:#", "#-P-#", "#-P_#-#", "#-#-P_#-#",
    "#-unknown", "#-#-unknown", "{64}",  NULL};

/* systemd-run 219 to 259; a health check of Podman. */
static const char *const runs[] = {"run-u#", "run-p#-i#", "run-#", "run-r{32}",
                                   "{64}",   "{64}-*",    NULL};

size_t cgroup_unit_kept(const char *unit) {
  const char *dot = strrchr(unit, '.'), *at = strchr(unit, '@');
  const char *start = at ? at + 1 : unit;
  struct parts parts;

  for (const char *const *shape = at ? instances : runs; *shape; shape++)
    if (dot > start && has_shape(*shape, (struct cursor){start, dot}, &parts))
      return (size_t)(start - unit);
  return strlen(unit);
}

/*
 * The meaning of a component of a path: the first row that fits counts. To know
 * another runtime, add a row.
 */
static const struct row {
  const char *above;           /* its shape; NULL any; "/x": x at the top */
  const char *shape;           /* one that begins with '*' has 64 digits */
  enum cgroup_runtime runtime; /* CGROUP_NO_CONTAINER: it is none */
} rows[] = {
    /* moby 28, daemon/oci_linux.go */
    {NULL, "docker-({64})~", CGROUP_DOCKER},
    {"docker", "({64})", CGROUP_DOCKER},
    /* podman 5.4, libpod/container_internal_linux.go; the second in the group
     * of a service */
    {NULL, "libpod-({64})~", CGROUP_PODMAN},
    {NULL, "libpod-payload-({64})", CGROUP_PODMAN},
    /* cri-o 1.32, internal/config/cgmgr; containerd 2.0, internal/cri: the
     * third where runc is not told of systemd */
    {NULL, "crio-({64})~", CGROUP_KUBERNETES},
    {NULL, "cri-containerd-({64})~", CGROUP_KUBERNETES},
    {NULL, "*:cri-containerd:({64})", CGROUP_KUBERNETES},
    /* kata-containers 3.2, src/runtime: pkg/resourcecontrol (the group of the
     * pod), virtcontainers/sandbox.go (threads of the virtual machine) */
    {NULL, "kata_({64})", CGROUP_KUBERNETES},
    {"kata_overhead", "({64})", CGROUP_KUBERNETES},
    /* podman 5.4, libpod/oci_conmon_linux.go: conmon, also CRI-O's, is the
     * monitor of a container. */
    {NULL, "*conmon-({64})~", CGROUP_NO_CONTAINER},
    /* nerdctl 2.0, pkg/cmd/container/run_cgroup_linux.go; with cgroupfs, and
     * as `ctr run` does, /NAMESPACE/ID (containerd 2.0, pkg/oci/spec.go) */
    {NULL, "nerdctl-({64})~", CGROUP_NERDCTL},
    {"/default", "({64})", CGROUP_NERDCTL},
    {"/default", "(*)", CGROUP_CONTAINERD},
    {"/k8s.io", "(*)", CGROUP_CONTAINERD},
    /* Other runtimes, and other parents of these. */
    {NULL, "*-({64})~", CGROUP_OTHER},
    {NULL, "*:({64})", CGROUP_OTHER},
    {NULL, "({64})~", CGROUP_OTHER},
    /* AWS ECS, as its hosts show it: /ecs/TASK/TASK-NUMBER */
    {NULL, "({32}-#)", CGROUP_ECS},
    /* nomad 1.7, client/lib/cgroupslib: ALLOCATION.TASK.scope */
    {NULL, "({8}-{4}-{4}-{4}-{12}.=*).scope", CGROUP_NOMAD},
    /* lxc 6.0, src/lxc/cgroups/cgfsng.c; 3.1; before */
    {NULL, "lxc.payload.(*)", CGROUP_LXC},
    {"lxc.payload", "(*)", CGROUP_LXC},
    {"lxc", "(*)", CGROUP_LXC},
    /* libvirt 10, src/util/virsystemd.c: its virtual machines are no
     * containers, its LXC is; systemd 257, src/nspawn/nspawn-register.c */
    {NULL, "machine-qemu\\x2d*.scope", CGROUP_NO_CONTAINER},
    {NULL, "machine-(lxc\\x2d#\\x2d=*).scope", CGROUP_MACHINE},
    {NULL, "machine-(*).scope", CGROUP_MACHINE},
    {NULL, "systemd-nspawn@(*).service", CGROUP_MACHINE},
    /* systemd-nspawn calls its scope NAME.scope with --register=no, and in
     * systemd 262 always. Only this subgroup distinguishes it from others. */
    {"(*).scope", "payload", CGROUP_MACHINE},
};

static bool fits(const struct row *r, struct span above, bool is_second,
                 struct span text, struct parts *ret) {
  bool is_top = r->above && *r->above == '/';

  /* The first two reject most rows at once. */
  if ((*r->shape >= 'a' && *r->shape != *text.text) ||
      (*r->shape == '*' && text.len < ID_LEN) || (is_top && !is_second))
    return false;
  *ret = (struct parts){.id = NULL};
  return (!r->above || has_shape(r->above + is_top,
                                 cursor_begin(above.text, above.len), ret)) &&
         has_shape(r->shape, cursor_begin(text.text, text.len), ret);
}

/* Copies a part of an id. Names of units have "\x2d" for a dash, and so on
 * (systemd 257, src/basic/unit-name.c). Returns the length of the copy. */
static size_t copy_id(const char *text, const char *end, bool is_escaped,
                      char *ret) {
  size_t len = 0;

  for (; text < end; text++) {
    struct cursor s = {text, end - text < 4 ? text : text + 4};
    uint64_t byte;

    ret[len++] = *text;
    if (!is_escaped || !parse_word(&s, "\\x") || !parse_hex(&s, &byte) ||
        !cursor_is_done(&s) || !byte)
      continue;
    ret[len - 1] = (char)byte;
    text = s.at - 1;
  }
  ret[len] = '\0';
  return len;
}

/* False if the component is no container. */
static bool parse_container(struct span above, bool is_second,
                            struct span component,
                            struct cgroup_container *ret) {
  const struct row *row = rows, *end = rows + sizeof(rows) / sizeof(*rows);
  struct parts p;
  const char *name;
  bool is_escaped;

  while (row < end && !fits(row, above, is_second, component, &p))
    row++;
  if (row == end || !row->runtime || p.end - p.id >= (ptrdiff_t)sizeof(ret->id))
    return false;
  is_escaped = row->runtime == CGROUP_MACHINE;
  name = p.name ? p.name : p.id;
  ret->runtime = row->runtime;
  ret->name_at = copy_id(p.id, name, is_escaped, ret->id);
  copy_id(name, p.end, is_escaped, ret->id + ret->name_at);
  ret->has_digits = strstr(row->shape, "{64}");
  return true;
}

void cgroup_parse_containers(struct span path, struct cgroup_containers *ret) {
  struct cursor s = cursor_begin(path.text, path.len);
  struct span above = {0}, component;
  size_t depth = 0, end_above = 0, end;

  ret->n = 0;
  while (next_component(&s, &component)) {
    struct cgroup_container *last = ret->n ? &ret->at[ret->n - 1] : NULL, found;
    bool is_inside = last && last->end == end_above;

    end = (size_t)(component.text - path.text) + component.len;
    depth += !span_is(component, "..");
    if (is_inside && last->runtime == CGROUP_MACHINE &&
        span_is(component, "supervisor"))
      ret->n--; /* nspawn itself, beside its payload */
    else if (!(is_inside && span_is(component, "payload")) &&
             parse_container(above, depth == 2, component, &found) &&
             (found.has_digits || !last || !last->has_digits)) {
      found.end = end;
      ret->at[ret->n < CGROUP_NESTED_MAX ? ret->n++ : ret->n - 1] = found;
    }
    above = component;
    end_above = end;
  }
}
