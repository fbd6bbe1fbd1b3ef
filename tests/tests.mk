# SPDX-License-Identifier: MIT
# Test programs: the objects of each, and the calls that tests replace
# (ld --wrap). Included by the Makefile.

SUPPORT_SRC := $(wildcard tests/support/*.c)
# Those that run for seconds are started first.
UNIT_LONG   := $(addprefix tests/unit/,plugin/test_plugin_faults.c \
  plugin/test_snapshot_faults.c \
  report/test_growth.c measure/test_oracle.c core/test_giants.c \
  core/test_uptime.c)
UNIT_SRC    := $(UNIT_LONG) \
  $(filter-out $(UNIT_LONG),$(sort $(wildcard tests/unit/*/test_*.c)))
UNIT        := $(B)/tests/unit

# Tests of the glue are linked with the glue and a stub of the daemon, tests of
# smaps-report with all of it except main(), the others with the core only.
UNIT_BIN        := $(UNIT_SRC:%.c=$(B)/%)
UNIT_GLUE_BIN   := $(filter $(UNIT)/plugin/%,$(UNIT_BIN))
UNIT_REPORT_BIN := $(filter $(UNIT)/smaps-report/%,$(UNIT_BIN))
# What the build of a package runs: programs that pass without /proc and /sys,
# with a clock that jumps, and in seconds on any machine.
PACKAGE_BIN     := $(filter-out $(addprefix $(UNIT)/,proc/test_kernel \
  report/test_growth report/test_growth_shapes),$(filter $(addprefix $(UNIT)/, \
  base/% cgroup/% config/% estimate/% proc/% process/% report/% smaps-report/% \
  match/test_group match/test_unseen member/test_address_space \
  member/test_member member/test_newborn sample/test_sampled \
  schedule/test_read_time schedule/test_schedule snapshot/test_json \
  snapshot/test_store),$(UNIT_BIN)))
UNIT_CORE_BIN   := $(filter-out $(UNIT_GLUE_BIN) $(UNIT_REPORT_BIN),$(UNIT_BIN))
BENCH_BIN       := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/*.c))
FUZZ_BIN        := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
ifeq ($(PROFILE),m32)
FUZZ_BIN := $(filter-out %/fuzz_json %/fuzz_container %/fuzz_report_load,$(FUZZ_BIN))
endif
SHAPE         := $(B)/tests/support/shape
# A program takes of the archive only what it uses.
SUPPORT_LIB   := $(B)/tests/support/support.a
FAULTS_OBJ    := $(addprefix $(B)/tests/support/,faults.o fault_run.o)
GLUE_SUPPORT  := $(B)/tests/support/stub_daemon.o $(B)/tests/support/items.o \
  $(B)/tests/support/glue.o $(FAULTS_OBJ)
TEST_OBJ      := $(patsubst %.c,$(B)/%.o,$(SUPPORT_SRC) $(UNIT_SRC) \
  $(wildcard tests/bench/*.c tests/fuzz/*.c))

$(TEST_OBJ): EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) -Itests/support
$(UNIT_REPORT_BIN:=.o): \
  EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) -Itests/support -Icontrib/smaps-report
$(UNIT_GLUE_BIN:=.o) $(GLUE_SUPPORT): \
  EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) -Itests/support -Iplugin $(COLLECTD_CPPFLAGS)
# To optimise a test takes longer than it takes to run it as it is written; what
# it tests is optimised, and so are those that run for seconds.
UNIT_CFLAGS_default := -O0
$(filter-out $(UNIT_LONG:%.c=$(B)/%.o),$(UNIT_BIN:=.o)): \
  OWN_CFLAGS += $(UNIT_CFLAGS_$(PROFILE))
$(TEST_OBJ): $(B)/tests/%.o: tests/%.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE)

$(SUPPORT_LIB): $(addprefix $(B)/tests/support/,test.o fixture.o proctree.o \
  draw.o world.o measured.o parsed.o memory_world.o \
  history.o stage.o paged.o reading.o \
  lineage.o memory_table.o capturing.o)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(UNIT_CORE_BIN): %: %.o $(SUPPORT_LIB) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lcmocka $(LIBS)

# --- calls that tests replace -------------------------------------------------

# The headers of glibc give calls with large offsets, and with 32 bits those with
# large times, another name. So must __wrap_CALL and __real_CALL have it.
FEATURES := $(filter __GLIBC__=% __USE_TIME% __SIZEOF_LONG__=%,$(shell $(CC) $(OWN_CPPFLAGS) \
  $(PROFILE_CFLAGS_$(PROFILE)) $(CPPFLAGS) $(CFLAGS) -include features.h -dM -E \
  -x c /dev/null 2>/dev/null | sed -n 's/^.define \(__[^ ]*\) /\1=/p'))
RENAMED :=
ifneq ($(filter __GLIBC__=%,$(FEATURES)),)
RENAMED += $(foreach c,open openat pread readdir scandir fstatfs getrlimit,$(c)=$(c)64)
ifeq ($(and $(filter __SIZEOF_LONG__=4,$(FEATURES)),$(filter __USE_TIME%,$(FEATURES))),)
RENAMED += fstat=fstat64 fstatat=fstatat64
else
RENAMED += fstat=__fstat64_time64 fstatat=__fstatat64_time64 \
  clock_gettime=__clock_gettime64 \
  pthread_cond_timedwait=__pthread_cond_timedwait64
endif
endif
$(TEST_OBJ): OWN_CPPFLAGS += $(foreach r,$(RENAMED),-D__wrap_$(subst =,=__wrap_,$(r)) \
  -D__real_$(subst =,=__real_,$(r)))
symbol = $(or $(patsubst $(1)=%,%,$(filter $(1)=%,$(RENAMED))),$(1))

# wrap PROGRAM,CALLS: tests/unit/PROGRAM defines __wrap_CALL for each call.
wrap = $(eval $(addprefix $(UNIT)/,$(1)): OWN_LDFLAGS += \
  $(foreach c,$(2),-Wl,--wrap=$(call symbol,$(c))))

# Pages have the size that trees are written for (test.h).
$(UNIT_BIN): OWN_LDFLAGS += -Wl,--wrap=sysconf -Wl,--wrap=worker_pool_new
# A process may end between any two system calls.
COLLECTED := core/test_collector read/test_identify match/test_unseen \
             measure/test_cgroup_watch core/test_kernel_memory
$(COLLECTED:%=$(UNIT)/%): $(B)/tests/support/collected.o
$(call wrap,$(COLLECTED),openat readlinkat)
# The right to look pages up is lost and comes back, time passes by reading, and
# the numbers of pages are in no file.
$(call wrap,core/test_giants,openat pread ioctl nanosleep)
# What is read is memory that is known, and no file.
$(call wrap,measure/test_oracle,reader_run statm_read_of status_read_of)
# kcmp() tells which processes share memory.
$(call wrap,member/test_address_space_shared plugin/test_log,syscall)
# The test can wait for a detached thread.
$(call wrap,snapshot/test_writer,pthread_detach)
# A hang does not depend on the load of the machine.
PATIENT := read/test_reader read/test_reader_hang read/test_worker_pool \
  read/test_pid_watch member/test_address_space_shared \
  measure/test_measure_unread measure/test_measure_observe \
  snapshot/test_recorder snapshot/test_restart \
  $(COLLECTED) core/test_giants core/test_month core/test_replay \
  measure/test_measure_truth
$(PATIENT:%=$(UNIT)/%): $(B)/tests/support/patience.o
$(call wrap,$(PATIENT),pthread_cond_timedwait)
# The call returns what the test wants, fails, or hangs.
$(call wrap,read/test_pid_watch,open)
$(call wrap,snapshot/test_restart,open)
$(call wrap,proc/test_procfs,readdir)
$(call wrap,proc/test_procfs_kept,fstatfs getrlimit)
$(call wrap,sample/test_page_layout,fstatfs)
$(call wrap,proc/test_kernel,uname open pread)
$(call wrap,core/test_page_size,uname)
$(call wrap,match/test_match,regexec fnmatch)
$(call wrap,base/test_user,getpwuid_r)
$(call wrap,proc/test_mapping,malloc)
$(call wrap,snapshot/test_store,write close fstat geteuid mkdir)

# Pauses are counted and not made, files have PAGEMAP_SCAN, and reads fail.
$(call wrap,sample/test_page_sample sample/test_page_layout \
  sample/test_mapping_sample sample/test_page_sample_huge, \
  nanosleep pagemap_scan pagemap_read)

# The system runs out of threads.
FEW := read/test_worker_pool read/test_reader read/test_reader_hang \
  read/test_pid_watch member/test_address_space_shared measure/test_measure_observe \
  snapshot/test_writer
$(FEW:%=$(UNIT)/%): $(B)/tests/support/few_threads.o
$(call wrap,$(FEW),pthread_create)

# Each system call fails once.
FAULTY := plugin/test_plugin_faults plugin/test_snapshot_faults
$(FAULTY:%=$(UNIT)/%): $(FAULTS_OBJ)
$(call wrap,$(FAULTY),malloc calloc realloc reallocarray strdup strndup free \
  newlocale freelocale regcomp regfree regexec opendir fdopendir \
  readdir scandir open openat read close fstat fstatat readlinkat syscall uname \
  clock_gettime getpwuid_r pthread_create pthread_cond_timedwait \
  pthread_cond_wait pthread_cond_signal write fsync \
  fchmod renameat unlinkat mkdir \
  plugin_register_complex_read plugin_register_notification \
  plugin_dispatch_values)

$(UNIT_GLUE_BIN): %: %.o $(filter-out $(FAULTS_OBJ),$(GLUE_SUPPORT)) \
  $(SUPPORT_LIB) $(GLUE_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
	  $(LDFLAGS) -lcmocka $(LIBS)

$(UNIT_REPORT_BIN): %: %.o $(SUPPORT_LIB) \
  $(filter-out %/main.o,$(REPORT_OBJ)) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lcmocka $(REPORT_LIBS)

$(SHAPE): %: %.o
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS)

FACTS := $(B)/tests/support/facts
$(FACTS).o: \
  EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) -Itests/support -Iplugin $(COLLECTD_CPPFLAGS)
$(FACTS): %: %.o $(addprefix $(B)/tests/support/,stub_daemon.o items.o proctree.o) \
  $(GLUE_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(LIBS)

# --- fuzzing and benchmarks --------------------------------------------------

# A fuzz target is linked with libFuzzer, or with a main() that replays files.
FUZZ_OBJ := $(B)/tests/fuzz/fuzz.o
ifneq ($(PROFILE),fuzz)
FUZZ_OBJ += $(B)/tests/fuzz/replay.o
endif
$(FUZZ_BIN): FUZZ_LIBS = $(LIBS)
FUZZ_REPORT_BIN := $(filter $(B)/tests/fuzz/fuzz_report%,$(FUZZ_BIN))
$(FUZZ_REPORT_BIN): $(filter-out %/main.o,$(REPORT_OBJ))
$(FUZZ_REPORT_BIN): FUZZ_LIBS = $(REPORT_LIBS)
$(FUZZ_REPORT_BIN:=.o): \
  EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) -Itests/support -Icontrib/smaps-report
$(FUZZ_BIN): %: %.o $(FUZZ_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) $(if $(filter fuzz,$(PROFILE)),-fsanitize=fuzzer) \
	  -o $@ $(filter %.o,$^) $(CORE_LIB) $(LDFLAGS) $(FUZZ_LIBS)

$(BENCH_BIN): %: %.o
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lpthread
