/*
 * /proc/PID/cgroup (cgroups(7); kernel/cgroup/cgroup.c, proc_cgroup_show):
 * "id:controllers:path" lines, and what systemd and the container runtimes
 * write into the path.
 */
#ifndef SMAPS_CGROUP_H
#define SMAPS_CGROUP_H

#include <smaps/scan.h>

/*
 * Chooses the one path that tells what the process belongs to: that of the
 * named hierarchy "systemd", else of the memory controller, else of the unified
 * hierarchy (id 0). On a hybrid host the unified line alone can be meaningless,
 * and so can any that says "/", where nobody uses that hierarchy: such a one is
 * taken only if the others say no more.
 *
 * Only the first two colons of a line separate; paths may hold more. A
 * " (deleted)" behind the path (the cgroup of a zombie was removed) is dropped.
 * A last line without its newline was cut short and is passed over.
 *
 * Returns 0 and points *ret into the text, or -EBADMSG, and leaves it alone,
 * where no line has a usable path.
 */
int cgroup_parse(const char *text, size_t len, struct span *ret);

/*
 * The three below look into such a path. They return false, and leave *ret
 * alone, where the path names no such thing. The result points into the path.
 */

/*
 * The systemd unit, as `ps -o unit` names it: the first component below the
 * slices, if it has the suffix of a unit that can hold processes (.service,
 * .scope, .socket, .mount, .swap). So for a user's own services it is
 * user@UID.service, and a unit inside a container is none of ours. A "/.." in
 * front, which leads out of the reader's cgroup namespace, is passed over.
 *
 * Without the '_' that systemd puts before a name that the kernel would take
 * for its own; `\x2d` and the like are part of the name and stay.
 */
bool cgroup_unit(struct span path, struct span *ret);

/*
 * The innermost slice above the unit, as `ps -o slice` names it; "-.slice" (a
 * constant) for a unit that stands in none. None for a unit right behind a
 * "/..": its slices are out of our sight.
 */
bool cgroup_slice(struct span path, struct span *ret);

/*
 * The container: the 64 hexadecimal digits that Docker, containerd, CRI-O and
 * Podman use, the innermost where they nest, else the name of an LXC or
 * systemd-nspawn container. A runtime's monitor (conmon) is not in it.
 */
bool cgroup_container(struct span path, struct span *ret);

#endif
