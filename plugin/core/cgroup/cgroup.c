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

/* ":PORT" at the end, and ":PORT-" before it. */
static bool has_two_ports(struct span s) {
  struct span address;
  struct cursor rest = cursor_begin(s.text, s.len);
  unsigned ports = 0;

  while (parse_part(&rest, '-', &address)) {
    const char *colon = memrchr(address.text, ':', address.len);
    size_t digits = colon ? strspn(colon + 1, DIGITS) : 0;

    ports += digits > 0 && colon + 1 + digits == address.text + address.len;
  }
  return ports == 2;
}

/*
 * COUNTER-ADDRESS:PORT-ADDRESS:PORT     a connection to a socket with Accept=
 * COUNTER-PID-UID, COUNTER-PID_ID-UID   likewise, of AF_UNIX
 * COUNTER-unknown                       from another namespace
 * COUNTER-COOKIE-…                      each of these, in newer versions
 *
 * (systemd 228 to 259, src/core/socket.c: instance_from_socket)
 */
static bool is_numbered(struct span instance) {
  struct span rest = instance;
  size_t counter = strspn(instance.text, DIGITS);

  if (counter == 0 || instance.text[counter] != '-')
    return false;
  strip_suffix(&rest, "unknown");
  if (strspn(instance.text, DIGITS "-_") >= rest.len)
    return rest.len < instance.len ||
           memchr(instance.text + counter + 1, '-', rest.len - counter - 1);
  return has_two_ports(instance);
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

static bool is_hex(struct span s) {
  for (size_t i = 0; i < s.len; i++)
    if (!is_hex_digit(s.text[i]))
      return false;
  return true;
}

/*
 * 0123…                                 Docker and Kubernetes with cgroupfs
 * docker-0123….scope                    with systemd; crio-, libpod-
 * kubepods-….slice:cri-containerd:0123… containerd set to another driver
 * libpod-conmon-0123….scope             the monitor of that container
 *
 * Slices are named after pods, never after containers.
 */
static bool parse_id(struct span component, struct span *ret) {
  struct span id, runtime;

  strip_suffix(&component, ".scope");
  if (component.len < ID_LEN)
    return false;
  runtime = (struct span){component.text, component.len - ID_LEN};
  id = (struct span){component.text + runtime.len, ID_LEN};
  if (!is_hex(id) || has_suffix(runtime, "conmon-"))
    return false;
  if (runtime.len > 0 && !has_suffix(runtime, "-") && !has_suffix(runtime, ":"))
    return false;
  *ret = id;
  return true;
}

/* LXC: lxc.payload.NAME since 4.0, lxc.payload/NAME in 3.1, lxc/NAME before. */
static bool parse_lxc(struct span above, struct span component,
                      struct span *ret) {
  if (!strip_prefix(&component, "lxc.payload.") &&
      !span_is(above, "lxc.payload") && !span_is(above, "lxc"))
    return false;
  *ret = component;
  return true;
}

/* systemd-nspawn, started as a service or by hand. libvirt gives its virtual
 * machines such a scope too; they are not containers. */
static bool parse_machine(struct span component, struct span *ret) {
  struct span name = component;

  if (!strip_prefix(&name, "systemd-nspawn@") ||
      !strip_suffix(&name, ".service")) {
    name = component;
    if (!strip_prefix(&name, "machine-") || !strip_suffix(&name, ".scope") ||
        strip_prefix(&name, "qemu\\x2d"))
      return false;
  }
  *ret = name;
  return true;
}

/* systemd-nspawn calls its scope NAME.scope with --register=no, and in systemd
 * 262 always. Only the subgroup distinguishes it from other scopes. */
static bool parse_payload(struct span above, struct span component,
                          struct span *ret) {
  struct span name;

  if (!span_is(component, "payload") || parse_machine(above, &name) ||
      !strip_suffix(&above, ".scope"))
    return false;
  *ret = above;
  return true;
}

bool cgroup_container(struct span path, struct span *ret) {
  struct cursor s = cursor_begin(path.text, path.len);
  struct span id = {0}, name = {0}, above = {0}, component;

  while (next_component(&s, &component)) {
    parse_id(component, &id);
    if (span_is(component, "supervisor") && parse_machine(above, &name))
      name = (struct span){0}; /* nspawn itself, beside its payload */
    else if (!parse_lxc(above, component, &name) &&
             !parse_payload(above, component, &name))
      parse_machine(component, &name);
    above = component;
  }
  if (!id.text && !name.text)
    return false;
  *ret = id.text ? id : name;
  return true;
}
