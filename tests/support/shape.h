/*
 * What the parts of the test program "shape" share. shape.c reads the options
 * and supervises; shape_kinds.c has one function for each kind of shape, which
 * runs in the root process, and what such processes are made of.
 */
#ifndef SMAPS_TESTS_SHAPE_H
#define SMAPS_TESTS_SHAPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define COMM_SIZE 16

/* How a process that execs this program again learns what it is to be. Not by
 * argv, which --argv-hex needs for itself. */
#define SHAPE_HELD "SHAPE_HELD"

struct shape;

struct kind {
  const char *name;
  void (*run)(struct shape *s); /* in the root process; does not return */
  const char *command;          /* what it understands: "grow", "go", NULL */
  unsigned children;            /* default of --children */
};

/* Ends with an entry without a name. */
extern const struct kind shape_kinds[];

struct shape {
  const struct kind *kind;
  char name[COMM_SIZE];
  char child_name[COMM_SIZE]; /* empty: as the root */
  const char *argv_hex;
  size_t bytes;
  size_t rewrite_bytes;
  unsigned children;
  unsigned threads;
  unsigned rate;
  unsigned seconds;
  unsigned life_ms;               /* churn: of each; 0 is for ever */
  int report_fd;                  /* records to the supervisor, or -1 */
  int command_fd;                 /* command lines from it */
  _Atomic unsigned long *started; /* churn: shared with the supervisor */
};

/* Messages of the processes to the supervisor. */
enum event {
  EVENT_EXPECT,  /* value: how many processes will be ready */
  EVENT_READY,   /* this one stands */
  EVENT_SWAPPED, /* value: KiB in swap */
  EVENT_DONE,    /* a command has been carried out */
};

struct record {
  enum event event;
  pid_t pid;
  unsigned long value;
};

/* Prints what failed, with errno, and ends the process. */
__attribute__((noreturn)) void shape_die(const char *what);

/* Bytes from hexadecimal, ended by a NUL that is not counted. -1 where it is
 * none, or too long for `size`. */
int shape_decode_hex(const char *hex, char *ret, size_t size, size_t *ret_len);

/* Asks for a SIGKILL at the parent's end, and checks that it is still there.
 * A change of credentials drops it: then ask again. */
void shape_die_with_parent(pid_t parent);

/* One command line, without its newline. False at the end of file. */
bool shape_read_line(int fd, char *line, size_t size);

/* The main function of what has been exec'ed so. */
__attribute__((noreturn)) void shape_run_held(const char *spec);

#endif
