/* Properties of patterns that are seen without compiling them. */
#ifndef SMAPS_PATTERN_H
#define SMAPS_PATTERN_H

#include <stdbool.h>

/*
 * Finds the ']' that ends a set in brackets; p points after its '['. NULL if
 * the set has no end. A ']' at the start is a member of the set, and a class
 * such as "[:alpha:]" may contain one. In a glob '!' negates as '^' does, and a
 * backslash escapes the next character; in a regular expression both are
 * members.
 */
const char *pattern_set_end(const char *p, bool is_glob);

/*
 * A back-reference takes glibc's regexec(3) exponential time: "(a*)\1b" takes
 * five seconds for a thousand letters a, and any user can put these into a
 * command line. Without one it is as a rule the square of the length at worst,
 * 50 to 200 ms for the 4 KiB that are matched. (POSIX has no back-references in
 * extended expressions.)
 */
bool pattern_has_back_reference(const char *regex);

#endif
