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

/*
 * glibc's regcomp(3) writes a repetition out: "a{100}" is a hundred letters,
 * "a+" two, and what is nested multiplies: "a" with thirty "+" behind it takes
 * more memory than there is. Where pieces can be empty, as in "(a|b?){2000}c",
 * memory and the time to match grow with a power of that (600 MB and 13 s).
 * True if more than PATTERN_REPEATED_MAX characters come from repetitions, of
 * which those of what can be empty count by their third power; or for more than
 * PATTERN_DEPTH_MAX parentheses in each other. False is no proof that matching
 * is fast: ".*a.{20}c" takes seconds.
 */
#define PATTERN_REPEATED_MAX 1000
#define PATTERN_DEPTH_MAX 64
bool pattern_repeats_too_much(const char *regex);

#endif
