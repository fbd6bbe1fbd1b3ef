/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/cgroup (cgroups(7); kernel/cgroup/cgroup.c, proc_cgroup_show):
 * "id:controllers:path" lines, and the names that systemd and the container
 * runtimes put into the path.
 */
#ifndef SMAPS_CGROUP_H
#define SMAPS_CGROUP_H

#include <smaps/text.h>

/*
 * Chooses the path that best identifies the process: that of the named
 * hierarchy "systemd", else of the memory controller, else of the unified
 * hierarchy (id 0). On a hybrid host the unified line alone can be meaningless,
 * and so can any path "/", because that hierarchy may be unused: "/" is chosen
 * only if all other lines say "/" too.
 *
 * Only the first two colons of a line are separators; paths may contain more.
 * The suffix " (deleted)" (the cgroup of a zombie was removed) is dropped. A
 * last line without its newline was cut short and is ignored.
 *
 * Returns 0 and points *ret into the text, or returns -EBADMSG and leaves *ret
 * unchanged if no line has a usable path.
 */
int cgroup_parse(const char *text, size_t len, struct span *ret);

/*
 * The path in the hierarchy of the memory controller: that of version 1, if a
 * line names "memory", else the unified one. Otherwise as cgroup_parse().
 */
int cgroup_parse_memory(const char *text, size_t len, bool *ret_is_v1,
                        struct span *ret);

/* Parses a file with a limit: a number of bytes. False for "max", which is no
 * limit, and for anything else. */
bool cgroup_parse_limit(struct span text, uint64_t *ret_bytes);

/* A file of "key number" lines (memory.events, memory.stat; /proc/vmstat has
 * the same form): the number of the key. False if it has no such line. */
bool cgroup_parse_keyed(struct span text, const char *key, uint64_t *ret);

/* A file of the pressure stall information (psi.rst): the microseconds of the
 * line "some" or "full" since the control group was made. False if it has no
 * such line. */
bool cgroup_parse_pressure(struct span text, const char *line,
                           uint64_t *ret_us);

/*
 * The next two functions search such a path. They return false and leave *ret
 * unchanged if the path has no unit or slice. The result points into the path.
 */

/*
 * The systemd unit, as `ps -o unit` names it: the first component below the
 * slices, if it has the suffix of a unit that can hold processes (.service,
 * .scope, .socket, .mount, .swap). So a user's own services belong to
 * user@UID.service, and units inside a container are not found. A leading
 * "/..", which leads out of the reader's cgroup namespace, is skipped.
 *
 * systemd puts '_' before a name that the kernel would take for its own; the
 * result is without it. `\x2d` and the like are part of the name and stay.
 */
bool cgroup_unit(struct span path, struct span *ret);

/*
 * How much of the name of a unit belongs to the service, not to one run of it:
 * all; up to the '@' of an instance that systemd numbers or names by an id, to
 * which its suffix is added; or nothing, of units that are made for one run.
 */
size_t cgroup_unit_kept(const char *unit);

/*
 * The innermost slice above the unit, as `ps -o slice` names it; "-.slice" (a
 * constant) for a unit outside of any slice. False for a unit directly after
 * "/..": its slices are out of sight.
 */
bool cgroup_slice(struct span path, struct span *ret);

/* The runtime that has made a container, and so knows its name. */
enum cgroup_runtime {
  CGROUP_NO_CONTAINER,
  /* Files have the names; the first has ids like those of the others, and the
   * third is containerd or CRI-O for kubelet, or Kata. */
  CGROUP_OTHER,
  CGROUP_DOCKER,
  CGROUP_KUBERNETES,
  CGROUP_PODMAN,
  CGROUP_NERDCTL,
  /* The control group has the name; the last is systemd-nspawn, or libvirt. */
  CGROUP_CONTAINERD,
  CGROUP_ECS,
  CGROUP_NOMAD,
  CGROUP_LXC,
  CGROUP_MACHINE
};

#define CGROUP_NESTED_MAX 4

struct cgroup_container {
  enum cgroup_runtime runtime;
  bool has_digits; /* the id is 64 hexadecimal digits */
  size_t name_at;  /* where in the id the name begins that stays the same */
  size_t end;      /* of its part of the path */
  char id[256];
};

/* Those that a path is in, the outermost first. */
struct cgroup_containers {
  size_t n;
  struct cgroup_container at[CGROUP_NESTED_MAX];
};

/*
 * Finds the containers in a path; of more than CGROUP_NESTED_MAX some in the
 * middle are left out. A container with a name inside one with digits counts as
 * a part of that one. A runtime's monitor (conmon) is not part of its
 * container.
 */
void cgroup_parse_containers(struct span path, struct cgroup_containers *ret);

#endif
