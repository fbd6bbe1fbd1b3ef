# collectd-smaps. `make help` lists the targets.

VERSION := 0.1.0

# A profile is a set of compiler flags with a build directory of its own:
#   make PROFILE=asan check-unit
PROFILE ?= default
B := build/$(PROFILE)

PREFIX  ?= /usr
DESTDIR ?=

# Where the installed collectd looks for plugins: it says so itself.
COLLECTD  ?= $(shell command -v collectd 2>/dev/null || \
               { test -x /usr/sbin/collectd && echo /usr/sbin/collectd; })
PLUGINDIR ?= $(or $(shell test -n "$(COLLECTD)" && $(COLLECTD) -h 2>/dev/null | \
               sed -n 's/^ *Plugin directory *//p'),$(PREFIX)/lib/collectd)
# Where its configuration includes files from, as distributions have it:
# /etc/collectd/collectd.conf.d (Debian), /etc/collectd.d (Fedora).
COLLECTD_CONF = $(or $(shell test -n "$(COLLECTD)" && $(COLLECTD) -h 2>/dev/null | \
               sed -n 's/^ *Config file *//p'),/etc/collectd/collectd.conf)
CONFDIR   ?= $(patsubst %/collectd/collectd.d,%/collectd/collectd.conf.d,$(dir \
               $(COLLECTD_CONF))collectd.d)
BINDIR    ?= $(PREFIX)/bin
MANDIR    ?= $(PREFIX)/share/man
DATADIR   ?= $(PREFIX)/share/collectd-smaps
DOCDIR    ?= $(PREFIX)/share/doc/collectd-smaps

# collectd's headers include each other as "collectd/core/…" (Debian) or as
# "daemon/…", and oconfig's as "liboconfig/…".
COLLECTD_INCLUDE ?= /usr/include
COLLECTD_CPPFLAGS ?= -DHAVE_CONFIG_H=1 \
  -isystem $(COLLECTD_INCLUDE)/collectd/core -isystem $(COLLECTD_INCLUDE)/collectd

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion \
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
  -Wpointer-arith -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla \
  -Wswitch-enum -Wnull-dereference -Wdouble-promotion -Wno-gnu

PROFILE_CFLAGS_default := -O2
PROFILE_CFLAGS_release := -O2 -DNDEBUG -D_FORTIFY_SOURCE=3 -fstack-protector-strong
PROFILE_CFLAGS_clang   := -O2
PROFILE_CFLAGS_debug   := -O0 -ggdb3
PROFILE_CFLAGS_asan    := -O1 -fsanitize=address,undefined \
  -fno-sanitize-recover=all -fno-omit-frame-pointer
PROFILE_CFLAGS_tsan    := -O1 -fsanitize=thread -fno-omit-frame-pointer
PROFILE_CFLAGS_m32     := -O2 -m32
# For libFuzzer; `make fuzz` sets it.
PROFILE_CFLAGS_fuzz    := -O1 -fsanitize=fuzzer-no-link,address,undefined \
  -fno-sanitize-recover=all -fno-omit-frame-pointer
PROFILE_CFLAGS_coverage := -O0 --coverage
ifneq ($(filter clang fuzz,$(PROFILE)),)
CC := clang
endif

comma := ,
# What the user gives in CPPFLAGS, CFLAGS and LDFLAGS comes last and wins.
OWN_CPPFLAGS := -Iinclude -D_GNU_SOURCE -DSMAPS_VERSION='"$(VERSION)"'
OWN_CFLAGS   := -std=gnu11 -g -fPIC -pthread -fvisibility=hidden $(WARNINGS) \
  $(PROFILE_CFLAGS_$(PROFILE))
OWN_LDFLAGS  := $(filter -fsanitize=% --coverage,$(PROFILE_CFLAGS_$(PROFILE)))
COMPILE = $(CC) $(OWN_CPPFLAGS) $(EXTRA_CPPFLAGS) $(OWN_CFLAGS) -MMD -MP \
  $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
LINK = $(CC) $(OWN_CFLAGS) $(CFLAGS)
LIBS := -lyajl -lpthread
# Of libyajl there is seldom one for 32 bits: what needs it is left out.
ifeq ($(PROFILE),m32)
LIBS := -lpthread
endif

# V=1 shows the commands.
Q    := $(if $(V),,@)
say   = $(if $(V),,@echo '  $(1) $(2)')

CORE_SRC    := $(wildcard plugin/core/*.c)
GLUE_SRC    := $(wildcard plugin/*.c)
SUPPORT_SRC := $(wildcard tests/support/*.c)
UNIT_SRC    := $(wildcard tests/unit/test_*.c)

CORE_OBJ := $(CORE_SRC:%.c=$(B)/%.o)
GLUE_OBJ := $(GLUE_SRC:%.c=$(B)/%.o)
CORE_LIB := $(B)/libsmaps-core.a
PLUGIN   := $(B)/smaps.so

REPORT_SRC := $(wildcard contrib/smaps-report/*.c)
REPORT_OBJ := $(REPORT_SRC:%.c=$(B)/%.o)
REPORT     := $(B)/smaps-report

# Test programs of the glue are linked with the glue and a stub of the daemon,
# those of the report tool with all of it but main(), the others with the core
# alone.
UNIT_BIN      := $(UNIT_SRC:tests/unit/%.c=$(B)/tests/unit/%)
UNIT_GLUE_BIN := $(filter $(B)/tests/unit/test_plugin%,$(UNIT_BIN))
UNIT_REPORT_BIN := $(filter $(B)/tests/unit/test_report%,$(UNIT_BIN))
UNIT_CORE_BIN := $(filter-out $(UNIT_GLUE_BIN) $(UNIT_REPORT_BIN),$(UNIT_BIN))
BENCH_BIN     := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/*.c))
FUZZ_BIN      := $(patsubst %.c,$(B)/%,$(wildcard tests/fuzz/fuzz_*.c))
ifeq ($(PROFILE),m32)
FUZZ_BIN := $(filter-out %/fuzz_json %/fuzz_report_load \
  %/fuzz_report_extract,$(FUZZ_BIN))
endif
C_FILES       := $(wildcard include/smaps/*.h plugin/*.[ch] plugin/core/*.c \
  contrib/smaps-report/*.[ch] tests/unit/*.c tests/support/*.[ch] \
  tests/bench/*.[ch] tests/fuzz/*.[ch])
PYTHON        ?= /usr/bin/python3
SHAPE         := $(B)/tests/support/shape
UNIT_SUPPORT  := $(B)/tests/support/fixture.o $(B)/tests/support/proctree.o \
  $(B)/tests/support/world.o $(B)/tests/support/parsed.o
GLUE_SUPPORT  := $(B)/tests/support/stub_daemon.o $(B)/tests/support/items.o \
  $(B)/tests/support/faults.o

.PHONY: all deps demo run-demo check check-unit check-corpus check-integration \
  print-unit soak fuzz run-fuzz coverage bench lint distcheck install uninstall \
  deb rpm release clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PLUGIN) $(REPORT)

$(CORE_OBJ) $(REPORT_OBJ): $(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE)

$(GLUE_OBJ): EXTRA_CPPFLAGS = $(COLLECTD_CPPFLAGS)
$(GLUE_OBJ): $(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE)

$(CORE_LIB): $(CORE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(PLUGIN): $(GLUE_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) -shared $(OWN_LDFLAGS) -Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now \
	  -o $@ $^ $(LDFLAGS) $(LIBS)

$(REPORT): $(REPORT_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lyajl

$(B)/tests/%.o: EXTRA_CPPFLAGS = -Itests/support
$(UNIT_REPORT_BIN:=.o): EXTRA_CPPFLAGS = -Itests/support -Icontrib/smaps-report
$(UNIT_GLUE_BIN:=.o) $(GLUE_SUPPORT): \
  EXTRA_CPPFLAGS = -Itests/support -Iplugin $(COLLECTD_CPPFLAGS)
$(B)/tests/%.o: tests/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE)

$(UNIT_CORE_BIN): %: %.o $(UNIT_SUPPORT) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lcmocka $(LIBS)

# This one lets processes end between any two system calls.
$(B)/tests/unit/test_collector: OWN_LDFLAGS += -Wl,--wrap=openat \
  -Wl,--wrap=readlinkat
# In these the system runs out of threads.
FEW_BIN := $(addprefix $(B)/tests/unit/,test_crew test_measure test_pid_watch \
  test_reader test_scribe)
$(FEW_BIN): $(B)/tests/support/few_threads.o
$(FEW_BIN): OWN_LDFLAGS += -Wl,--wrap=pthread_create
# And the kernel does not tell who shares memory.
$(B)/tests/unit/test_measure: OWN_LDFLAGS += -Wl,--wrap=syscall
# And what is detached can still be waited for.
$(B)/tests/unit/test_scribe: OWN_LDFLAGS += -Wl,--wrap=pthread_detach
$(B)/tests/unit/test_reader: OWN_LDFLAGS += -Wl,--wrap=pthread_cond_timedwait
# And in these it says what the test wants, or fails, or hangs.
$(B)/tests/unit/test_pid_watch: OWN_LDFLAGS += -Wl,--wrap=open
$(B)/tests/unit/test_procfs: OWN_LDFLAGS += -Wl,--wrap=readdir
$(B)/tests/unit/test_procfs_kept: OWN_LDFLAGS += -Wl,--wrap=fstatfs \
  -Wl,--wrap=getrlimit
$(B)/tests/unit/test_kernel: OWN_LDFLAGS += -Wl,--wrap=uname -Wl,--wrap=open
$(B)/tests/unit/test_match: OWN_LDFLAGS += -Wl,--wrap=regexec
$(B)/tests/unit/test_user: OWN_LDFLAGS += -Wl,--wrap=getpwuid_r
$(B)/tests/unit/test_store: OWN_LDFLAGS += -Wl,--wrap=write -Wl,--wrap=close \
  -Wl,--wrap=fstat -Wl,--wrap=geteuid

# In these memory runs out.
SCARCE := malloc calloc realloc reallocarray strdup
SCARCE_BIN := $(addprefix $(B)/tests/unit/,test_json test_mapping test_scribe \
  test_settings test_store)
$(SCARCE_BIN): $(B)/tests/support/scarce.o
$(SCARCE_BIN): OWN_LDFLAGS += $(SCARCE:%=-Wl,--wrap=%)

# And this one lets each call into the system fail.
FAULTY := malloc calloc realloc reallocarray strdup strndup free newlocale \
  freelocale setmntent regcomp regfree regexec opendir fdopendir readdir open openat read \
  close fstat fstatat readlinkat syscall uname clock_gettime getpwuid_r \
  pthread_create pthread_cond_timedwait write fsync fchmod renameat unlinkat mkdir faccessat \
  yajl_gen_alloc yajl_gen_free plugin_register_complex_read \
  plugin_register_notification plugin_dispatch_values
FAULTY_BIN := $(addprefix $(B)/tests/unit/,test_plugin_faults \
  test_plugin_record_faults)
$(FAULTY_BIN): $(B)/tests/support/faults.o
$(FAULTY_BIN): OWN_LDFLAGS += $(FAULTY:%=-Wl,--wrap=%)
# This one looks at what becomes of snapshots alone.
$(B)/tests/unit/test_plugin_record_faults: OWN_LDFLAGS += \
  $(addprefix -Wl$(comma)--wrap=,recorder_init recorder_run record_start \
  record_written scribe_give)

$(UNIT_GLUE_BIN): %: %.o $(UNIT_SUPPORT) $(filter-out %/faults.o,$(GLUE_SUPPORT)) \
  $(GLUE_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lcmocka $(LIBS)

$(UNIT_REPORT_BIN): %: %.o $(UNIT_SUPPORT) \
  $(filter-out %/main.o,$(REPORT_OBJ)) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lcmocka -lyajl

$(SHAPE): $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/shape*.c))
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS)

# A fuzz target stands alone with libFuzzer, or with a main() that replays what
# it has found.
FUZZ_OBJ := $(B)/tests/fuzz/fuzz.o
ifneq ($(PROFILE),fuzz)
FUZZ_OBJ += $(B)/tests/fuzz/replay.o
endif
$(B)/tests/fuzz/fuzz_config: $(addprefix $(B)/plugin/,config.o config_capture.o option.o) \
  $(B)/tests/support/stub_daemon.o
$(B)/tests/fuzz/fuzz_config.o: \
  EXTRA_CPPFLAGS = -Itests/support -Iplugin $(COLLECTD_CPPFLAGS)
FUZZ_REPORT_BIN := $(filter $(B)/tests/fuzz/fuzz_report%,$(FUZZ_BIN))
$(FUZZ_REPORT_BIN): $(filter-out %/main.o,$(REPORT_OBJ))
$(FUZZ_REPORT_BIN:=.o): EXTRA_CPPFLAGS = -Itests/support -Icontrib/smaps-report
$(FUZZ_BIN): %: %.o $(FUZZ_OBJ) $(CORE_LIB)
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) $(if $(filter fuzz,$(PROFILE)),-fsanitize=fuzzer) \
	  -o $@ $(filter %.o,$^) $(CORE_LIB) $(LDFLAGS) $(LIBS)

$(BENCH_BIN): %: %.o
	$(call say,LD,$@)
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) -lpthread

# --- running ---------------------------------------------------------------

deps:
	@contrib/deps build check backends dist

deps-%:
	@contrib/deps $(subst -, ,$*)

# Everything below is built by a second make, because what it is built against
# may have come with the packages that were just installed.
demo: deps-build
	@$(MAKE) --no-print-directory run-demo

run-demo: $(PLUGIN) $(REPORT)
	@contrib/demo $(COLLECTD) $(PLUGIN) $(REPORT)

check: deps-build-check-backends
	@$(MAKE) --no-print-directory check-unit
	@$(MAKE) --no-print-directory check-corpus
	@$(MAKE) --no-print-directory check-integration

check-unit: $(UNIT_BIN)
	@tests/run $(sort $(UNIT_BIN))

check-corpus: $(FUZZ_BIN)
	@tests/fuzz/run replay $(sort $(FUZZ_BIN))

# FUZZ=fuzz_name picks a target.
fuzz: deps-build-dist
	@$(MAKE) --no-print-directory PROFILE=fuzz run-fuzz

run-fuzz: $(FUZZ_BIN)
	@tests/fuzz/run fuzz $(if $(FUZZ),$(FUZZ:%=$(B)/tests/fuzz/%),$(sort $(FUZZ_BIN)))

# For scripts: the test programs of this profile.
print-unit:
	@echo $(sort $(UNIT_BIN))

check-integration: $(PLUGIN) $(SHAPE) $(REPORT)
	@COLLECTD=$(COLLECTD) PLUGIN=$(PLUGIN) SHAPE=$(SHAPE) CORE=$(CORE_LIB) \
	  REPORT=$(REPORT) $(PYTHON) tests/integration/run.py $(TESTS)

soak: $(B)/tests/unit/test_uptime
	@UPTIME_CYCLES=1000000 $(B)/tests/unit/test_uptime
	@SOAK_INTERVALS=10000 $(MAKE) --no-print-directory check-integration \
	  TESTS=test_endurance

# Of the core by the unit tests: lines, and branches taken at least once.
coverage:
	@rm -rf build/coverage
	@$(MAKE) --no-print-directory PROFILE=coverage check-unit
	@tests/coverage build/coverage/plugin/core

bench: $(PLUGIN) $(BENCH_BIN)
	@COLLECTD=$(COLLECTD) PLUGIN=$(PLUGIN) $(PYTHON) tests/bench/run.py $(BENCHFLAGS)

lint:
	@clang-format --dry-run -Werror $(C_FILES)
	@tests/layering

distcheck: deps-build-check-backends-dist
	@tests/distcheck

install: $(PLUGIN) $(REPORT)
	$(Q)$(INSTALL_ENV) contrib/install install

uninstall:
	$(Q)$(INSTALL_ENV) contrib/install uninstall

INSTALL_ENV = DESTDIR='$(DESTDIR)' PLUGIN='$(PLUGIN)' PLUGINDIR='$(PLUGINDIR)' \
  REPORT='$(REPORT)' BINDIR='$(BINDIR)' MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' \
  DATADIR='$(DATADIR)' CONFDIR='$(CONFDIR)' MANIFEST='$(MANIFEST)'

# --- handing over ----------------------------------------------------------

deb: deps-build-check-package
	@contrib/packaging/make-deb $(VERSION)

rpm: deps-build-package
	@contrib/packaging/make-rpm $(VERSION)

# Of a commit and of nothing else: the same bytes whenever and wherever.
release:
	@contrib/packaging/make-release $(VERSION) $(REV)

clean:
	rm -rf build

help:
	@echo 'all                build $(PLUGIN) and $(REPORT)'
	@echo 'demo               show what uses the memory of this host, now'
	@echo 'deps               install what building and testing need'
	@echo 'check              all tests (check-unit, check-corpus, check-integration)'
	@echo '                   TESTS="test_values" picks integration tests'
	@echo 'bench              measure against the floor and others; BENCHFLAGS=--quick'
	@echo 'fuzz               libFuzzer, FUZZ_SECONDS=60 each; FUZZ=fuzz_stat picks one'
	@echo 'soak               10,000 intervals under churn, test_uptime over four months'
	@echo '                   of its clock: twenty minutes'
	@echo 'coverage           what the unit tests reach of plugin/core'
	@echo 'lint               formatting and layering'
	@echo 'distcheck          sanitizers, valgrind, clang, release build'
	@echo 'install            to DESTDIR, PREFIX, PLUGINDIR=$(PLUGINDIR)'
	@echo 'uninstall          takes away what install has put there'
	@echo 'deb rpm            packages, in build/'
	@echo 'release            tarball of the commit REV (HEAD), in build/'
	@echo 'clean'

-include $(CORE_OBJ:.o=.d) $(GLUE_OBJ:.o=.d) $(REPORT_OBJ:.o=.d) \
  $(UNIT_BIN:=.d) $(FUZZ_BIN:=.d) $(SUPPORT_SRC:%.c=$(B)/%.d)
