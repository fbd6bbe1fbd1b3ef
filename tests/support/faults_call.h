/* What the wrappers of calls share: they ask faults_fail() before they call. */
#ifndef SMAPS_TESTS_FAULTS_CALL_H
#define SMAPS_TESTS_FAULTS_CALL_H

#include <stdbool.h>

#define FAULTS_NAME_SIZE 128

/* Not of errno: a read that brings half, or nothing. */
#define CUT_SHORT (-1)
#define AT_END (-2)

enum call {
  CALL_MALLOC,
  CALL_CALLOC,
  CALL_REALLOC,
  CALL_REALLOCARRAY,
  CALL_STRDUP,
  CALL_STRNDUP,
  CALL_NEWLOCALE,
  CALL_REGCOMP,
  CALL_REGEXEC,
  CALL_OPENDIR,
  CALL_FDOPENDIR,
  CALL_READDIR,
  CALL_SCANDIRAT,
  CALL_OPEN,
  CALL_OPENAT,
  CALL_READ,
  CALL_CLOSE,
  CALL_FSTAT,
  CALL_FSTATAT,
  CALL_READLINKAT,
  CALL_KCMP,
  CALL_UNAME,
  CALL_GETPWUID_R,
  CALL_PTHREAD_CREATE,
  CALL_WRITE,
  CALL_FSYNC,
  CALL_FCHMOD,
  CALL_RENAMEAT,
  CALL_UNLINKAT,
  CALL_MKDIR,
  CALL_FACCESSAT,
  CALL_REGISTER_READ,
  CALL_REGISTER_NOTIFICATION,
  CALL_DISPATCH,
  CALLS
};

/* Counts the call. Returns 0, or what it is to fail with: an error, which is in
 * errno too, CUT_SHORT or AT_END. object: the name of what it is made on. */
int faults_fail(enum call call, const char *object);

/* Whether calls are counted: between faults_start() and faults_stop(). */
bool faults_are_counted(void);

#endif
