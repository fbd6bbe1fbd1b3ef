/* SPDX-License-Identifier: MIT */
#include "test.h"

#include "proc/status.h"

#include "fixture.h"

#include <string.h>

static const unsigned all_known = STATUS_STATE | STATUS_PARENT | STATUS_UID |
                                  STATUS_THREADS | STATUS_VM_SWAP |
                                  STATUS_VM_PTE | STATUS_NSPID | STATUS_GID;

FIXTURE_PARSER(status_parse, struct status_sample)

TEST(a_capture_is_read_key_by_key) {
  struct status_sample s;

  assert_int_equal(parse_file("status-6.18", &s), 0);
  assert_int_equal(s.known, all_known);
  assert_int_equal(s.state, 'S');
  assert_int_equal(s.uid_effective, 0);
  assert_int_equal(s.threads, 1);
  assert_int_equal(s.inner_pid, 0);
  assert_int_equal(s.gid_effective, 0);
  assert_int_equal(s.vm_swap_bytes, 0);
  assert_int_equal(s.vm_pte_bytes, 72 * KIB);

  assert_int_equal(parse_file("status-4.9", &s), 0);
  assert_int_equal(s.known, all_known);
  assert_int_equal(s.vm_pte_bytes, 124 * KIB);
}

TEST(a_kernel_thread_has_no_memory_lines) {
  struct status_sample s;

  assert_int_equal(parse_file("status-6.18-kthread", &s), 0);
  assert_int_equal(s.known, all_known - STATUS_VM_SWAP - STATUS_VM_PTE);
}

TEST(the_innermost_pid_is_that_of_its_own_namespace) {
  static const struct {
    const char *text;
    uint32_t inner;
  } cases[] = {{"NSpid:\t6876\n", 0},
               {"NSpid:\t6876\t1\n", 1},
               {"NSpid:\t6876\t412\t7\n", 7},
               {"Threads:\t1\n", 0}};
  struct status_sample s;

  for (size_t i = 0; i < LENGTH(cases); i++) {
    assert_int_equal(parse(cases[i].text, strlen(cases[i].text), &s), 0);
    assert_int_equal(s.inner_pid, cases[i].inner);
  }
}

TEST(a_known_key_with_another_value_is_rejected) {
  static const struct text_case cases[] = {
      {"one uid", TEXT("Uid:\t0\n")},
      {"one gid", TEXT("Gid:\t0\n")},
      {"three uids", TEXT("Uid:\t0\t0\t0\n")},
      {"five uids", TEXT("Uid:\t0\t0\t0\t0\t0\n")},
      {"uids parted by blanks", TEXT("Uid:\t0 0 0 0\n")},
      {"uid overflows", TEXT("Uid:\t0\t4294967296\t0\t0\n")},
      {"uids on the next line", TEXT("Uid:\n0\t0\t0\t0\n")},
      {"threads are no number", TEXT("Threads:\tx\n")},
      {"threads overflow", TEXT("Threads:\t4294967296\n")},
      {"threads run on", TEXT("Threads:\t1x\n")},
      {"threads cut short", TEXT("Threads:\t1")},
      {"threads twice", TEXT("Threads:\t1\nThreads:\t1\n")},
      {"pid in a namespace is no number", TEXT("NSpid:\t5\tx\n")},
      {"pid in a namespace is missing", TEXT("NSpid:\t\n")},
      {"swap without unit", TEXT("VmSwap:\t 1\n")},
      {"page tables without number", TEXT("VmPTE:\t kB\n")},
      {"page tables run on", TEXT("VmPTE:\t1 kBs\n")},
      {"an unknown line cut short", TEXT("Threads:\t2\nSig")},
  };

  fixture_refuse(cases, LENGTH(cases), is_taken);
}

TEST(text_that_is_cut_short_never_changes_a_value) {
  static const char *const names[] = {"status-6.18", "status-4.9",
                                      "status-6.18-kthread"};
  struct status_sample whole, s;

  for (size_t i = 0; i < LENGTH(names); i++) {
    struct span text = fixture_load(names[i]);

    assert_int_equal(parse(text.text, text.len, &whole), 0);
    for (size_t cut = 0; cut < text.len; cut++) {
      if (parse(text.text, cut, &s) != 0)
        continue;
      if (cut > 0 && text.text[cut - 1] != '\n')
        fail_msg("%s, %zu bytes: taken", names[i], cut);
      if (s.known & ~whole.known ||
          (s.known & STATUS_VM_PTE && s.vm_pte_bytes != whole.vm_pte_bytes))
        fail_msg("%s, %zu bytes: other values", names[i], cut);
    }
  }
}
