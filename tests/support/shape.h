/*
 * What the parts of the test program "shape" share. shape.c reads the options
 * and supervises; shape_kinds.c has one function for each kind of shape, which
 * runs in the root process; shape_process.c is what such processes are made of.
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
 * argv, which --argv and its like need for themselves. */
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

#define NO_UID (~0U)

struct shape {
  const struct kind *kind;
  char name[COMM_SIZE];
  char child_name[COMM_SIZE];  /* empty: as the root */
  const char *argv, *argv_hex; /* argv: "empty", "none" or NULL */
  const char *copy;
  size_t bytes;
  size_t rewrite_bytes;
  size_t argv_bytes;
  unsigned children;
  unsigned threads;
  unsigned rate;
  unsigned seconds;
  unsigned life_ms;               /* churn: of each; 0 is for ever */
  unsigned uid;                   /* or NO_UID */
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

void shape_report(const struct shape *s, enum event event, unsigned long value);

/* Prints what failed, with errno, and ends the process. */
__attribute__((noreturn)) void shape_die(const char *what);

/* Bytes from hexadecimal, ended by a NUL that is not counted. -1 where it is
 * none, or too long for `size`. */
int shape_decode_hex(const char *hex, char *ret, size_t size, size_t *ret_len);

void shape_sleep_ms(unsigned ms);

/* ---- memory ---- */

char *shape_map(size_t bytes, int flags, int fd);

/* Anonymous, in small pages only: khugepaged must not change the numbers. */
char *shape_map_small(size_t bytes, int flags);

/* Makes every page present, different from every other and from before. */
void shape_write(char *p, size_t bytes);
void shape_read(const char *p, size_t bytes);

/* A private anonymous mapping, written. */
char *shape_new_private(size_t bytes);

/* ---- processes ---- */

/* Asks for a SIGKILL at the parent's end, and checks that it is still there.
 * A change of credentials drops it: then ask again. */
void shape_die_with_parent(pid_t parent);

/* The first steps of a child: its end, its name. */
void shape_begin_child(const struct shape *s, pid_t parent);

/* Forks a child that has begun; otherwise as fork(), but it does not fail. */
pid_t shape_fork(const struct shape *s);

/* Forks all children; each runs body() on the memory, reports and holds. */
void shape_fork_children(struct shape *s, char *memory,
                         void (*body)(const struct shape *s, char *memory));

__attribute__((noreturn)) void shape_hold(void);

/* The root and its children stand. Says so, and then takes commands. */
__attribute__((noreturn)) void shape_stand(const struct shape *s);

/* One command line, without its newline. False at the end of file. */
bool shape_read_line(int fd, char *line, size_t size);

/* ---- exec ---- */

/* The path that this program runs from. */
const char *shape_own_path(void);
void shape_copy_program(const char *path);

/* Becomes `path`, this program again, under the name and the argv asked for. */
__attribute__((noreturn)) void shape_exec(const struct shape *s,
                                          const char *path, const char *name);

/* The main function of what has been exec'ed so. */
__attribute__((noreturn)) void shape_run_held(const char *spec);

#endif
