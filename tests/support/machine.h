/* Unit tests do not take these from the machine that they run on. */
#ifndef SMAPS_TESTS_MACHINE_H
#define SMAPS_TESTS_MACHINE_H

/*
 * The size of a page, of the core and of the trees that tests make: 4096 unless
 * the test says another, before it makes its tree. Trees are written for it,
 * and the machine's may be 16 or 64 KiB.
 *
 * Nor how fast it is: MACHINE_SLOWNESS=5 in the environment has a reading count
 * as hung five times later than the test says, for one that is emulated.
 */
void machine_set_page_size(long bytes);

#endif
