/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID/mountinfo (proc(5); fs/proc_namespace.c, show_mountinfo): the
 * mounts that a process sees.
 *
 * 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw
 */
#ifndef SMAPS_MOUNTINFO_H
#define SMAPS_MOUNTINFO_H

#include <smaps/text.h>

struct mount {
  uint32_t major, minor; /* the device of its files, as in maps */
  struct span type;      /* of the file system */
};

/* Consumes a line. False if it is not one of a mount: *ret is unchanged. */
bool mountinfo_next(struct cursor *s, struct mount *ret);

/* The devices of hugetlbfs among the mounts that were fed: the first ones. */
#define HUGETLB_DEVICES_MOST 64

struct hugetlb_devices {
  struct {
    uint32_t major, minor;
  } devices[HUGETLB_DEVICES_MOST];
  size_t n;
};

/* Takes the whole lines of a piece of mountinfo; returns their length. */
size_t hugetlb_devices_feed(struct hugetlb_devices *d, const char *text,
                            size_t len);

/* Whether a device, as maps has it ("fd:01"), is one of them. */
bool hugetlb_devices_has(const struct hugetlb_devices *d, struct span device);

#endif
