#include "cgroup/cgroup.h"

#include <errno.h>
#include <string.h>

#define ID_LEN 64

/* The next two strip only if something is left. */
static bool strip_prefix(struct span *s, const char *prefix) {
  size_t n = strlen(prefix);

  if (s->len <= n || memcmp(s->text, prefix, n) != 0)
    return false;
  *s = (struct span){.text = s->text + n, .len = s->len - n};
  return true;
}

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

/* Which line identifies the process best; 0: none. */
enum worth { WORTH_UNIFIED = 1, WORTH_MEMORY, WORTH_SYSTEMD };

static unsigned worth_of(uint32_t id, struct span controllers) {
  struct cursor s = cursor_begin(controllers.text, controllers.len);
  unsigned best = id == 0 ? WORTH_UNIFIED : 0;
  struct span name;

  while (parse_part(&s, ',', &name)) {
    if (span_is(name, "name=systemd"))
      return WORTH_SYSTEMD;
    if (span_is(name, "memory"))
      best = WORTH_MEMORY;
  }
  return best;
}

/* The worth of a line, and its path. */
static unsigned parse_worth(struct span line, struct span *ret_path) {
  struct cursor s = cursor_begin(line.text, line.len);
  struct span controllers;
  uint32_t id;

  if (!parse_u32(&s, &id) || !parse_char(&s, ':') ||
      !parse_part(&s, ':', &controllers) || cursor_is_done(&s) || *s.at != '/')
    return 0;
  *ret_path = (struct span){.text = s.at, .len = (size_t)(s.end - s.at)};
  strip_suffix(ret_path, " (deleted)");
  return worth_of(id, controllers);
}

/* In an unused hierarchy all processes are in the root, so any other path says
 * more. */
static unsigned rank(unsigned worth, struct span path, bool is_of_memory) {
  if (is_of_memory)
    return worth == WORTH_SYSTEMD ? 0 : worth;
  return worth && path.len > 1 ? worth + WORTH_SYSTEMD : worth;
}

/*
 * 9:name=systemd:/system.slice/nginx.service
 * 4:cpu,memory:/system.slice/nginx.service
 * 0::/system.slice/nginx.service
 *
 * A line without a newline was cut short and so names another path. Returns the
 * highest rank; 0 without a usable line.
 */
static unsigned choose(const char *text, size_t len, bool is_of_memory,
                       struct span *ret) {
  struct cursor s = cursor_begin(text, len);
  struct span line, path = {0};
  unsigned best = 0;

  while (parse_line(&s, &line) && s.at > line.text + line.len) {
    unsigned worth = parse_worth(line, &path),
             own = rank(worth, path, is_of_memory);

    if (own > best) {
      best = own;
      *ret = path;
    }
  }
  return best;
}

int cgroup_parse(const char *text, size_t len, struct span *ret) {
  return choose(text, len, false, ret) ? 0 : -EBADMSG;
}

int cgroup_parse_memory(const char *text, size_t len, bool *ret_is_v1,
                        struct span *ret) {
  unsigned worth = choose(text, len, true, ret);

  if (!worth)
    return -EBADMSG;
  *ret_is_v1 = worth == WORTH_MEMORY;
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
    strip_prefix(&component, "_");
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

#define DIGITS "0123456789"
#define HEX_DIGITS DIGITS "abcdef"

/* In a shape a number stands for so many hexadecimal digits, "#" for a decimal
 * number, "*" for the rest, and anything else for itself. */
static bool has_shape(const char *shape, struct span id) {
  struct cursor s = cursor_begin(id.text, id.len);
  struct cursor want = cursor_begin(shape, strlen(shape));
  uint64_t number;

  while (!cursor_is_done(&want) && !cursor_is_done(&s)) {
    if (parse_char(&want, '*'))
      return true;
    if (parse_u64(&want, &number)) {
      for (; number > 0 && !cursor_is_done(&s) && is_hex_digit(*s.at); number--)
        s.at++;
      if (number > 0)
        return false;
    } else if (parse_char(&want, '#') ? !parse_u64(&s, &number)
                                      : !parse_char(&s, *want.at++)) {
      return false;
    }
  }
  return cursor_is_done(&want) && cursor_is_done(&s);
}

/* ADDRESS:PORT-ADDRESS:PORT, at the end. */
static bool has_two_ports(struct span s) {
  struct span address;
  struct cursor rest = cursor_begin(s.text, s.len);
  unsigned ports = 0;

  while (parse_part(&rest, '-', &address)) {
    const char *colon = memrchr(address.text, ':', address.len);
    size_t digits = colon ? strspn(colon + 1, DIGITS) : 0;

    ports += digits > 0 && colon + 1 + digits == address.text + address.len &&
             strspn(address.text, HEX_DIGITS ".:%") >= address.len;
  }
  return ports == 2;
}

/* PID-UID, PID_ID-UID and COOKIE-PID_ID-UID. A version, a date or an address
 * can look like the first; not with a process 0 or 1. */
static bool is_peer(struct span s) {
  struct cursor at = cursor_begin(s.text, s.len);
  bool has_cookie = has_shape("#-#_#-#", s);
  uint64_t pid = 0;

  if (!has_cookie && !has_shape("#_#-#", s) && !has_shape("#-#", s))
    return false;
  parse_u64(&at, &pid);
  if (has_cookie && parse_char(&at, '-'))
    parse_u64(&at, &pid);
  return pid > 1;
}

/*
 * COUNTER-ADDRESS:PORT-ADDRESS:PORT     a connection to a socket with Accept=
 * COUNTER-PID-UID, COUNTER-PID_ID-UID   the same of AF_UNIX
 * COUNTER-unknown                       from another namespace
 * COUNTER-COOKIE-…                      each of these, in newer versions
 *
 * (systemd 228 to 259, src/core/socket.c: instance_from_socket)
 */
static bool is_numbered(struct span instance) {
  size_t counter = strspn(instance.text, DIGITS);
  struct span rest = {instance.text + counter + 1, instance.len - counter - 1};

  if (counter == 0 || counter + 1 >= instance.len ||
      instance.text[counter] != '-')
    return false;
  return is_peer(rest) || has_two_ports(rest) ||
         (strip_suffix(&rest, "unknown")
              ? strspn(rest.text, DIGITS "-") >= rest.len
              : span_is(rest, "unknown"));
}

/* 64 hexadecimal digits: the instance of a session of Cockpit, and the name of
 * a health check of Podman (with "-startup" or "-" and a number behind it). */
static bool begins_with_id(const char *name, char end) {
  size_t len = strspn(name, HEX_DIGITS);

  return len == ID_LEN && (name[len] == end || name[len] == '.');
}

/* run-u12, run-p12-i34, run-12 and run-r0123… of systemd-run 219 to 259. */
static bool is_of_run(struct span name) {
  size_t digits;

  if (!strip_prefix(&name, "run-"))
    return false;
  if (strip_prefix(&name, "r"))
    return name.len >= 16 && strspn(name.text, HEX_DIGITS) == name.len;
  if (!strip_prefix(&name, "u"))
    strip_prefix(&name, "p");
  digits = strspn(name.text, DIGITS);
  if (digits > 0 && digits + 2 < name.len &&
      memcmp(name.text + digits, "-i", 2) == 0)
    digits += 2 + strspn(name.text + digits + 2, DIGITS);
  return digits == name.len;
}

size_t cgroup_unit_kept(const char *unit) {
  const char *dot = strrchr(unit, '.'), *at = strchr(unit, '@');
  size_t len = strlen(unit), kept = at ? (size_t)(at - unit) + 1 : 0;
  struct span instance;

  if (!dot || (at && dot < at))
    return len;
  if (!at)
    return begins_with_id(unit, '-') ||
                   is_of_run((struct span){unit, (size_t)(dot - unit)})
               ? 0
               : len;
  instance = (struct span){at + 1, (size_t)(dot - at) - 1};
  return is_numbered(instance) || begins_with_id(at + 1, '.') ? kept : len;
}

/*
 * The meaning of a component of a path: the first row that fits counts. To know
 * another runtime, add a row.
 */
static const struct row {
  const char *above;  /* the component above; NULL any; "/x": x at the top */
  const char *prefix; /* "*-": anything that ends so */
  const char *shape;  /* of the id, see has_shape() */
  const char *suffix; /* may be missing behind 64 digits */
  enum cgroup_runtime runtime; /* CGROUP_NO_CONTAINER: it is none */
  /* The name follows these in the id; "": files have it, or the id is it. */
  const char *before_name;
} rows[] = {
    /* podman 5.4, libpod/oci_conmon_linux.go: conmon, also CRI-O's, is the
     * monitor of a container. */
    {NULL, "*conmon-", "64", ".scope", CGROUP_NO_CONTAINER, ""},
    /* moby 28, daemon/oci_linux.go */
    {NULL, "docker-", "64", ".scope", CGROUP_DOCKER, ""},
    {"docker", "", "64", "", CGROUP_DOCKER, ""},
    /* podman 5.4, libpod/container_internal_linux.go; the second in the group
     * of a service */
    {NULL, "libpod-", "64", ".scope", CGROUP_PODMAN, ""},
    {NULL, "libpod-payload-", "64", "", CGROUP_PODMAN, ""},
    /* cri-o 1.32, internal/config/cgmgr; containerd 2.0, internal/cri: the
     * third where runc is not told of systemd */
    {NULL, "crio-", "64", ".scope", CGROUP_KUBERNETES, ""},
    {NULL, "cri-containerd-", "64", ".scope", CGROUP_KUBERNETES, ""},
    {NULL, "*:cri-containerd:", "64", "", CGROUP_KUBERNETES, ""},
    /* kata-containers 3.2, src/runtime: pkg/resourcecontrol (the group of the
     * pod), virtcontainers/sandbox.go (threads of the virtual machine) */
    {NULL, "kata_", "64", "", CGROUP_KUBERNETES, ""},
    {"kata_overhead", "", "64", "", CGROUP_KUBERNETES, ""},
    /* nerdctl 2.0, pkg/cmd/container/run_cgroup_linux.go; with cgroupfs, and
     * as `ctr run` does, /NAMESPACE/ID (containerd 2.0, pkg/oci/spec.go) */
    {NULL, "nerdctl-", "64", ".scope", CGROUP_NERDCTL, ""},
    {"/default", "", "64", "", CGROUP_NERDCTL, ""},
    {"/default", "", "*", "", CGROUP_CONTAINERD, ""},
    {"/k8s.io", "", "*", "", CGROUP_CONTAINERD, ""},
    /* Other runtimes, and other parents of these. */
    {NULL, "*-", "64", ".scope", CGROUP_OTHER, ""},
    {NULL, "*:", "64", "", CGROUP_OTHER, ""},
    {NULL, "", "64", ".scope", CGROUP_OTHER, ""},
    /* AWS ECS, as its hosts show it: /ecs/TASK/TASK-NUMBER */
    {NULL, "", "32-#", "", CGROUP_ECS, ""},
    /* nomad 1.7, client/lib/cgroupslib: ALLOCATION.TASK.scope */
    {NULL, "", "8-4-4-4-12.*", ".scope", CGROUP_NOMAD, "."},
    /* lxc 6.0, src/lxc/cgroups/cgfsng.c; 3.1; before */
    {NULL, "lxc.payload.", "*", "", CGROUP_LXC, ""},
    {"lxc.payload", "", "*", "", CGROUP_LXC, ""},
    {"lxc", "", "*", "", CGROUP_LXC, ""},
    /* libvirt 10, src/util/virsystemd.c: its virtual machines are no
     * containers, its LXC is; systemd 257, src/nspawn/nspawn-register.c */
    {NULL, "machine-qemu\\x2d", "*", ".scope", CGROUP_NO_CONTAINER, ""},
    {NULL, "machine-", "lxc\\x2#\\x2*", ".scope", CGROUP_MACHINE, "--"},
    {NULL, "machine-", "*", ".scope", CGROUP_MACHINE, ""},
    {NULL, "systemd-nspawn@", "*", ".service", CGROUP_MACHINE, ""},
};

/* Strips the component of its prefix and suffix. */
static bool fits(const struct row *r, struct span above, bool is_second,
                 struct span *component) {
  const char *prefix = r->prefix;
  bool is_digits = *r->shape == '6'; /* most rows, and few components */

  if (is_digits && component->len < ID_LEN)
    return false;
  if (r->above && !span_is(above, r->above) &&
      !(is_second && *r->above == '/' && span_is(above, r->above + 1)))
    return false;
  if (*r->suffix && !strip_suffix(component, r->suffix) && !is_digits)
    return false;
  if (*prefix == '*') {
    size_t n = strlen(++prefix) + ID_LEN;

    if (component->len <= n)
      return false;
    component->text += component->len - n;
    component->len = n;
  }
  return (!*prefix || strip_prefix(component, prefix)) &&
         has_shape(r->shape, *component);
}

/* Names of units have "\x2d" for a dash, and so on (systemd 257,
 * src/basic/unit-name.c). */
static void copy_id(struct span s, bool is_escaped, char *ret) {
  struct cursor at = cursor_begin(s.text, s.len);

  while (!cursor_is_done(&at)) {
    char pair[] = "..";
    uint64_t byte = 0;

    if (is_escaped && parse_word(&at, "\\x")) {
      struct cursor digits = {pair, pair + 2};

      memcpy(pair, at.at, at.end - at.at < 2 ? 0 : 2);
      if (!parse_hex(&digits, &byte) || !cursor_is_done(&digits))
        byte = 0;
      at.at += byte ? 2 : -2;
    }
    *ret++ = byte ? (char)byte : *at.at++;
  }
  *ret = '\0';
}

static void set_container(struct cgroup_container *c, const struct row *r,
                          struct span id, size_t end) {
  const char *name;

  *c = (struct cgroup_container){.runtime = r->runtime,
                                 .has_digits = strcmp(r->shape, "64") == 0,
                                 .end = end};
  copy_id(id, r->runtime == CGROUP_MACHINE, c->id);
  name = c->id;
  for (const char *b = r->before_name; *b && name; b++)
    name = (name = strchr(name, *b)) ? name + 1 : NULL;
  if (name && *name)
    c->name_at = (size_t)(name - c->id);
}

/* False if the component is no container. `end` is where it ends. */
static bool parse_container(struct span above, bool is_second,
                            struct span component, size_t end,
                            struct cgroup_container *ret) {
  static const struct row payload = {
      .shape = "*", .runtime = CGROUP_MACHINE, .before_name = ""};
  struct span id;

  if (component.len >= sizeof(ret->id) || above.len >= sizeof(ret->id))
    return false;
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    id = component;
    if (!fits(&rows[i], above, is_second, &id))
      continue;
    if (rows[i].runtime)
      set_container(ret, &rows[i], id, end);
    return rows[i].runtime;
  }
  /* systemd-nspawn calls its scope NAME.scope with --register=no, and in
   * systemd 262 always. Only the subgroup distinguishes it from others. */
  if (!span_is(component, "payload") || !strip_suffix(&above, ".scope"))
    return false;
  set_container(ret, &payload, above, end);
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
             parse_container(above, depth == 2, component, end, &found) &&
             (found.has_digits || !last || !last->has_digits))
      ret->at[ret->n < CGROUP_NESTED_MAX ? ret->n++ : ret->n - 1] = found;
    above = component;
    end_above = end;
  }
}
