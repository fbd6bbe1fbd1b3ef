# SPDX-License-Identifier: MIT
# collectd-smaps. `make help` lists the targets.

VERSION := 0.1.0

# A profile is a set of compiler flags with a build directory of its own:
#   make PROFILE=asan check-unit
PROFILE ?= default
B := build/$(PROFILE)

# For what an administrator builds; packages say /usr. The plugin and its
# configuration go where collectd looks, whatever PREFIX is.
PREFIX  ?= /usr/local
DESTDIR ?=

# The plugin directory of the installed collectd, from its `-h`.
COLLECTD  ?= $(shell command -v collectd 2>/dev/null || \
               { test -x /usr/sbin/collectd && echo /usr/sbin/collectd; })
PLUGINDIR ?= $(or $(shell test -n "$(COLLECTD)" && $(COLLECTD) -h 2>/dev/null | \
               sed -n 's/^ *Plugin directory *//p'),/usr/lib/collectd)
# The directory of included configuration files: /etc/collectd/collectd.conf.d
# (Debian), /etc/collectd.d (Fedora).
COLLECTD_CONF = $(or $(shell test -n "$(COLLECTD)" && $(COLLECTD) -h 2>/dev/null | \
               sed -n 's/^ *Config file *//p'),/etc/collectd/collectd.conf)
CONFDIR   ?= $(patsubst %/collectd/collectd.d,%/collectd/collectd.conf.d,$(dir \
               $(COLLECTD_CONF))collectd.d)
BINDIR    ?= $(PREFIX)/bin
MANDIR    ?= $(PREFIX)/share/man
DATADIR   ?= $(PREFIX)/share/collectd-smaps
DOCDIR    ?= $(PREFIX)/share/doc/collectd-smaps

# collectd's headers, as packages install them below COLLECTD_INCLUDE, where they
# include each other as "collectd/core/…" (Debian) or as "daemon/…"; or those of
# its source tree, COLLECTD_SRC. A tree that was not configured has no config.h:
# these are the definitions of it that headers use, as they are on Linux.
COLLECTD_INCLUDE ?= /usr/include
COLLECTD_SRC ?=
ifeq ($(COLLECTD_SRC),)
LIBOCONFIG := $(COLLECTD_INCLUDE)/collectd/liboconfig
COLLECTD_CPPFLAGS ?= -DHAVE_CONFIG_H=1 \
  -isystem $(COLLECTD_INCLUDE)/collectd/core -isystem $(COLLECTD_INCLUDE)/collectd
else
ifeq ($(wildcard $(COLLECTD_SRC)/src/daemon/plugin.h),)
$(error COLLECTD_SRC=$(COLLECTD_SRC): expected the sources of collectd, with \
  src/daemon/plugin.h)
endif
LIBOCONFIG := $(COLLECTD_SRC)/src/liboconfig
COLLECTD_HAS := SYS_TYPES SYS_STAT STRINGS UNISTD SYS_WAIT FCNTL SYS_SOCKET \
  ENDIAN SYS_PARAM DIRENT
COLLECTD_CPPFLAGS ?= $(if $(wildcard $(COLLECTD_SRC)/src/config.h), \
  -DHAVE_CONFIG_H=1,$(COLLECTD_HAS:%=-DHAVE_%_H=1) -DTIME_WITH_SYS_TIME=1 \
  -DNAN_STATIC_DEFAULT=1 -DPACKAGE_VERSION='"$(shell sed -n \
  's/^DEFAULT_VERSION="\(.*\)"/\1/p' $(COLLECTD_SRC)/version-gen.sh)"') \
  -isystem $(COLLECTD_SRC)/src/daemon -isystem $(COLLECTD_SRC)/src
endif

# What check has to know of the daemon.
DAEMON_CPPFLAGS = -DPLUGINDIR='"$(PLUGINDIR)"'

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
PROFILE_CFLAGS_ablate  := -O2 -include tests/support/ablate.h
# A compiler given by the environment or the command line wins.
ifeq ($(origin CC)$(filter clang fuzz,$(PROFILE)),default$(PROFILE))
CC := clang
endif

# The user's CPPFLAGS, CFLAGS and LDFLAGS come last and win.
# With 32 bits, large offsets: readdir() fails with EOVERFLOW otherwise where an
# inode's number or a place in a directory has more.
OWN_CPPFLAGS := -Iinclude -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
  -DSMAPS_VERSION='"$(VERSION)"'
OWN_CFLAGS   := -std=gnu11 -g -fPIC -pthread -fvisibility=hidden $(WARNINGS) \
  $(PROFILE_CFLAGS_$(PROFILE))
OWN_LDFLAGS  := $(filter -fsanitize=% --coverage,$(PROFILE_CFLAGS_$(PROFILE)))
CORE_CPPFLAGS := -Iplugin/core
COMPILE = $(CC) $(OWN_CPPFLAGS) $(EXTRA_CPPFLAGS) $(OWN_CFLAGS) -MMD -MP \
  $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
LINK = $(CC) $(OWN_CFLAGS) $(CFLAGS)
LIBS := -lyajl -lpthread -lm
# libyajl is rarely available for 32 bits: targets that need it are left out.
ifeq ($(PROFILE),m32)
LIBS := -lpthread -lm
endif

# V=1 shows the commands.
Q    := $(if $(V),,@)
say   = $(if $(V),,@echo '  $(1) $(2)')

CORE_SRC := $(wildcard plugin/core/*.c plugin/core/*/*.c)
GLUE_SRC := $(wildcard plugin/*.c)

CORE_OBJ := $(CORE_SRC:%.c=$(B)/%.o)
GLUE_OBJ := $(GLUE_SRC:%.c=$(B)/%.o)
CORE_LIB := $(B)/libsmaps-core.a
PLUGIN   := $(B)/smaps.so

# smaps-report has the core in it, and the plugin's sources that read options and
# log problems. liboconfig, for which collectd has no library, is built here.
REPORT_SRC := $(wildcard contrib/smaps-report/*.c)
OCONFIG    := contrib/smaps-report/liboconfig
OCONFIG_OBJ := $(addprefix $(B)/$(OCONFIG)/,oconfig.o parser.o scanner.o)
REPORT_OBJ := $(REPORT_SRC:%.c=$(B)/%.o) $(OCONFIG_OBJ) \
  $(addprefix $(B)/plugin/,config.o log.o)
# The text of the page that smaps-report html writes.
PAGE       := $(B)/contrib/smaps-report/page
PAGE_SRC   := contrib/smaps-report/html
REPORT_OBJ += $(PAGE).o
REPORT     := $(B)/smaps-report
REPORT_LIBS = $(LIBS) -lncursesw
# Those of its sources that include headers of collectd.
REPORT_GLUE := config_file hints host_lookup messages other_plugins probe

C_FILES    := $(wildcard include/smaps/*.h plugin/*.[ch] plugin/core/*.[ch] \
  plugin/core/*/*.[ch] contrib/smaps-report/*.[ch] tests/unit/*/*.c \
  tests/support/*.[ch] tests/bench/*.[ch] tests/fuzz/*.[ch])
PYTHON     ?= /usr/bin/python3

# Not in git; a tarball has them.
DASHBOARDS := $(addprefix contrib/grafana/smaps-,influxdb.json prometheus.json)

.PHONY: all plugin deps demo run-demo check run-check need-cmocka check-unit check-corpus \
  check-package packages-check \
  check-integration check-arch check-vm print-unit soak ablate fuzz run-fuzz coverage bench run-bench lint \
  distcheck install uninstall \
  deb rpm release clean help always
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PLUGIN) $(REPORT) $(DASHBOARDS)

plugin: $(PLUGIN)

# The file changes with the flags and the version, and then all objects are
# rebuilt. `install` alone does not check it: root may have other flags in the
# environment than the user who has built. Nothing is built where the compiler or
# the package of a header is missing.
NEEDED_HEADERS := stdio.h yajl/yajl_parse.h daemon/collectd.h daemon/plugin.h
COMPILER_DEPS  := deps-build$(if $(findstring clang,$(CC)),-dist)
FLAGS := $(CC) $(OWN_CPPFLAGS) $(CORE_CPPFLAGS) $(COLLECTD_CPPFLAGS) $(DAEMON_CPPFLAGS) \
  $(OWN_CFLAGS) $(CPPFLAGS) $(CFLAGS)
ifneq ($(MAKECMDGOALS),install)
$(B)/flags: always
endif
can_include = printf '\#include <%s>\n' $(1) | $(FLAGS) -E -x c - >/dev/null
NAME_DEPS   = { echo 'run: sudo make $(COMPILER_DEPS)' >&2; exit 1; }
$(B)/flags:
	@mkdir -p $(@D)
	@printf '%s\n' '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || { \
	  $(call can_include,$(NEEDED_HEADERS)) || $(NAME_DEPS); \
	  printf '%s\n' '$(subst ','\'',$(FLAGS))' >$@; }

# What smaps-report needs in addition; the plugin alone builds without.
ifneq ($(MAKECMDGOALS),plugin)
$(B)/flags: | $(B)/report-tools
endif
$(B)/report-tools:
	@mkdir -p $(@D)
	@{ command -v bison && command -v flex; } >/dev/null && \
	  $(call can_include,curses.h) || $(NAME_DEPS)
	@touch $@

$(CORE_OBJ) $(REPORT_SRC:%.c=$(B)/%.o): EXTRA_CPPFLAGS = $(CORE_CPPFLAGS)
$(GLUE_OBJ): EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) $(COLLECTD_CPPFLAGS)
$(REPORT_GLUE:%=$(B)/contrib/smaps-report/%.o): \
  EXTRA_CPPFLAGS = $(CORE_CPPFLAGS) -Iplugin $(COLLECTD_CPPFLAGS) $(DAEMON_CPPFLAGS)
$(CORE_OBJ) $(REPORT_SRC:%.c=$(B)/%.o) $(GLUE_OBJ): $(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(COMPILE)

$(B)/$(OCONFIG)/parser.c: $(OCONFIG)/parser.y $(B)/flags
	@mkdir -p $(@D)
	$(call say,BISON,$<)
	$(Q)bison -Wno-deprecated --defines=$(@D)/parser.h -o $@ $<
$(B)/$(OCONFIG)/scanner.c: $(OCONFIG)/scanner.l $(B)/flags
	@mkdir -p $(@D)
	$(call say,FLEX,$<)
	$(Q)flex -o $@ $<
$(B)/$(OCONFIG)/oconfig.c: $(OCONFIG)/oconfig.c $(B)/flags
	@mkdir -p $(@D)
	$(Q)cp $< $@
$(OCONFIG_OBJ): OWN_CPPFLAGS += -I$(OCONFIG) -I$(B)/$(OCONFIG) \
  -isystem $(LIBOCONFIG)
# The warnings are those of its authors.
$(OCONFIG_OBJ): OWN_CFLAGS := $(filter-out -W%,$(OWN_CFLAGS)) -w
$(OCONFIG_OBJ): %.o: %.c
	$(call say,CC,$<)
	$(Q)$(COMPILE)
$(B)/$(OCONFIG)/scanner.o: $(B)/$(OCONFIG)/parser.c

$(PAGE).c: $(wildcard $(PAGE_SRC)/*)
	@mkdir -p $(@D)
	$(call say,EMBED,$(PAGE_SRC))
	$(Q)$(PAGE_SRC)/embed >$@

$(PAGE).o: $(PAGE).c $(B)/flags
	$(call say,CC,$<)
	$(Q)$(COMPILE) -Icontrib/smaps-report

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
	$(Q)$(LINK) $(OWN_LDFLAGS) -o $@ $^ $(LDFLAGS) $(REPORT_LIBS)

$(DASHBOARDS) &: contrib/grafana/make-dashboards
	@command -v $(PYTHON) >/dev/null || \
	  { echo 'run: sudo make deps-build' >&2; exit 1; }
	$(call say,WRITE,$(DASHBOARDS))
	$(Q)$(PYTHON) $<

include tests/tests.mk

# --- running ---------------------------------------------------------------

deps:
	@contrib/deps compile check backends dist

deps-%:
	@contrib/deps $(subst -, ,$*)

# Under sudo, what is built belongs to the owner of the tree.
AS_OWNER = $(shell [ "$$(id -u)" != 0 ] || [ "$$(stat -c %u .)" = 0 ] || \
  stat -c 'setpriv --reuid=%u --regid=%g --clear-groups' .)

# A second make builds everything below, because the first one may have
# installed the packages that it needs.
demo:
	@[ "$$(id -u)" = 0 ] || { echo 'demo: run with sudo: sudo make demo' >&2; exit 1; }
	@contrib/deps compile
	@$(AS_OWNER) $(MAKE) --no-print-directory all
	@$(MAKE) --no-print-directory run-demo

run-demo: $(PLUGIN) $(REPORT)
	@CONFDIR='$(CONFDIR)' contrib/demo $(COLLECTD) $(PLUGIN) $(REPORT)

# On all processors, unless -j says otherwise.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# The package without which no test of a part can run, or nothing.
lacking = $(if $(shell command -v '$(1)'),,$(2))
UNIT_LACKS = $(shell $(CC) $(CPPFLAGS) $(CFLAGS) \
  $(addprefix -include ,stdarg.h stddef.h setjmp.h stdint.h cmocka.h) \
  -E -x c /dev/null >/dev/null 2>&1 || echo libcmocka-dev)
INTEGRATION_LACKS = $(firstword $(call lacking,$(PYTHON),python3) \
  $(call lacking,$(or $(COLLECTD),collectd),collectd-core) \
  $(call lacking,setpriv,util-linux))

# Only root installs what is missing. For a user, a part that cannot run is left
# out, and the end says why; so do single tests (tests/integration/run.py).
check:
	@[ "$$(id -u)" != 0 ] || contrib/deps compile check backends
	@$(MAKE) --no-print-directory run-check

run-check:
	@$(AS_OWNER) $(MAKE) --no-print-directory $(JOBS) $(PLUGIN) $(REPORT) $(FUZZ_BIN) \
	  $(if $(UNIT_LACKS),,$(UNIT_BIN)) \
	  $(if $(INTEGRATION_LACKS),,$(SHAPE) $(FACTS) $(DASHBOARDS))
	$(if $(UNIT_LACKS),,@$(MAKE) --no-print-directory check-unit)
	@$(MAKE) --no-print-directory check-corpus
	$(if $(INTEGRATION_LACKS),,@$(MAKE) --no-print-directory check-integration)
	$(if $(UNIT_LACKS),@echo 'left out: all unit tests: needs $(UNIT_LACKS)')
	$(if $(INTEGRATION_LACKS),@echo \
	  'left out: all integration tests: needs $(INTEGRATION_LACKS)')

# Without the package, one line in place of the compiler's errors.
$(UNIT_BIN:=.o): | need-cmocka
need-cmocka:
	@$(if $(UNIT_LACKS),echo 'tests/unit needs $(UNIT_LACKS): sudo make deps-check' >&2; exit 1)

check-unit: $(UNIT_BIN)
	@tests/run $(UNIT_BIN)

# For the builds of packages: it depends on no kernel, clock or load. The parsers
# of untrusted text are among it.
check-package: $(PACKAGE_BIN) $(FUZZ_BIN)
	@tests/run $(PACKAGE_BIN)
	@tests/fuzz/run replay $(sort $(FUZZ_BIN))

check-corpus: $(FUZZ_BIN)
	@tests/fuzz/run replay $(sort $(FUZZ_BIN))

# FUZZ=fuzz_name selects a target.
fuzz: deps-compile-dist
	@$(AS_OWNER) $(MAKE) --no-print-directory PROFILE=fuzz run-fuzz

run-fuzz: $(FUZZ_BIN)
	@tests/fuzz/run fuzz $(if $(FUZZ),$(FUZZ:%=$(B)/tests/fuzz/%),$(sort $(FUZZ_BIN)))

# Prints the test programs of this profile, for scripts.
print-unit:
	@echo $(UNIT_BIN)

check-integration: $(PLUGIN) $(SHAPE) $(REPORT) $(FACTS) $(DASHBOARDS)
	@$(if $(INTEGRATION_LACKS),echo \
	  'check-integration needs $(INTEGRATION_LACKS): sudo make deps-compile-check' >&2; exit 1)
	@COLLECTD=$(COLLECTD) PLUGIN=$(PLUGIN) SHAPE=$(SHAPE) CORE=$(CORE_LIB) \
	  REPORT=$(REPORT) FACTS=$(FACTS) $(PYTHON) tests/integration/run.py $(TESTS)

# Other architectures, emulated. ARCH="arm64 s390x" picks some.
check-arch: deps-arch
	@PYTHON='$(PYTHON)' tests/arch $(ARCH)

# Systems in virtual machines. VM="bookworm trixie" picks some, TESTS experiments.
check-vm: deps-vm
	@VM='$(VM)' $(PYTHON) tests/vm/run.py $(TESTS)

soak: $(addprefix $(UNIT)/,core/test_uptime core/test_month core/test_giants \
  report/test_growth plugin/test_plugin_faults plugin/test_snapshot_faults)
	@TEST_SECONDS=0 UPTIME_CYCLES=1000000 $(UNIT)/core/test_uptime
	@TEST_SECONDS=0 MONTH_CYCLES=1000000 $(UNIT)/core/test_month
	@TEST_SECONDS=0 GIANTS_CYCLES=20000 $(UNIT)/core/test_giants
	@TEST_SECONDS=0 GROWTH_TIMES=20 $(UNIT)/report/test_growth
	@TEST_SECONDS=0 FAULTS_ALIKE=1 $(UNIT)/plugin/test_plugin_faults
	@TEST_SECONDS=0 FAULTS_ALIKE=1 $(UNIT)/plugin/test_snapshot_faults
	@SOAK_INTERVALS=10000 $(MAKE) --no-print-directory check-integration \
	  TESTS=test_endurance

# What each rule of the estimate buys; RULES="copies newborns" for some of them.
ABLATE_TESTS := measure/test_oracle core/test_month core/test_uptime core/test_giants

ablate:
	@$(AS_OWNER) $(MAKE) --no-print-directory PROFILE=ablate \
	  $(addprefix build/ablate/tests/unit/,$(ABLATE_TESTS))
	@$(AS_OWNER) $(PYTHON) tests/ablate build/ablate $(RULES)

# Coverage of the core by unit tests: lines, and branches taken at least once. A
# part of each simulation reaches the same lines. It fails below the floor.
COVERAGE_FLOOR := 95
coverage:
	@rm -rf build/coverage
	@UPTIME_CYCLES=1000 MONTH_CYCLES=1000 ORACLE_PERCENT=10 GIANTS_CYCLES=100 \
	  $(MAKE) --no-print-directory PROFILE=coverage check-unit
	@tests/coverage build/coverage/plugin/core $(COVERAGE_FLOOR)

bench: deps-compile-bench
	@$(AS_OWNER) $(MAKE) --no-print-directory $(PLUGIN) $(BENCH_BIN)
	@$(MAKE) --no-print-directory run-bench

run-bench: $(PLUGIN) $(BENCH_BIN)
	@COLLECTD=$(COLLECTD) PLUGIN=$(PLUGIN) $(PYTHON) tests/bench/run.py $(BENCHFLAGS)

lint:
	@command -v clang-format >/dev/null || \
	  { echo 'lint: clang-format is missing: sudo make deps-lint' >&2; exit 1; }
	@clang-format --dry-run -Werror $(C_FILES)
	@tests/layering
	@tests/line_limits
	@tests/shell

distcheck: deps-compile-check-backends-dist-deb-packages
	@tests/distcheck

# What is installed has no asserts: they would end the daemon.
ifeq ($(PROFILE),default)
install:
	@$(AS_OWNER) $(MAKE) --no-print-directory PROFILE=release all
	@$(MAKE) --no-print-directory PROFILE=release install
else
install: $(PLUGIN) $(REPORT) $(DASHBOARDS)
	$(Q)$(INSTALL_ENV) contrib/install install
endif

uninstall:
	$(Q)$(INSTALL_ENV) contrib/install uninstall

INSTALL_ENV = DESTDIR='$(DESTDIR)' PLUGIN='$(PLUGIN)' PLUGINDIR='$(PLUGINDIR)' \
  REPORT='$(REPORT)' BINDIR='$(BINDIR)' MANDIR='$(MANDIR)' DOCDIR='$(DOCDIR)' \
  DATADIR='$(DATADIR)' CONFDIR='$(CONFDIR)' MANIFEST='$(MANIFEST)' \
  COLLECTD_CONF='$(COLLECTD_CONF)'

# --- handing over ----------------------------------------------------------

# Elsewhere there is no collectd of that distribution to build for.
deb:
	@command -v dpkg >/dev/null || \
	  { echo 'deb: packages for Debian are built in Debian' >&2; exit 1; }
	@contrib/deps compile deb
	@$(AS_OWNER) contrib/packaging/make-deb $(VERSION)

rpm:
	@command -v dnf >/dev/null || \
	  { echo 'rpm: packages for Fedora are built in Fedora' >&2; exit 1; }
	@contrib/deps compile rpm
	@$(AS_OWNER) contrib/packaging/make-rpm $(VERSION)

# With lintian, blhc and rpmlint, where they are, and each package built twice.
packages-check:
	@contrib/deps compile $(call packager,dpkg,deb) $(call packager,dnf,rpm) packages
	@$(AS_OWNER) contrib/packaging/check $(VERSION)

packager = $(if $(shell command -v $(1)),$(2))

# A tarball of a commit only: reproducible byte for byte.
release:
	@contrib/packaging/make-release $(VERSION) $(REV)

# The dashboards stay where they are part of the sources: in a tarball.
clean:
	rm -rf build $(if $(wildcard .git),$(shell git check-ignore $(DASHBOARDS) \
	  2>/dev/null))

help:
	@echo 'all                build $(PLUGIN), $(REPORT)'
	@echo '                   and the dashboards of contrib/grafana'
	@echo 'plugin             build the plugin alone: no curses, bison, flex and Python;'
	@echo '                   COLLECTD_SRC=dir takes the headers of a source tree of collectd'
	@echo 'demo               show how the memory of this host is used now'
	@echo 'deps               install the packages for building and testing'
	@echo 'check              run all tests that can run here (check-unit, check-corpus,'
	@echo '                   check-integration); as root, install what the rest needs first'
	@echo '  one unit test:   make build/default/tests/unit/proc/test_rollup, and run that;'
	@echo '                   with an argument it runs some of its tests: "every_key*"'
	@echo '  one integration test:  make check-integration TESTS=test_values, or'
	@echo '                   TESTS=test_values.ValuesInDetail, or several'
	@echo '  PROFILE=asan     with any target: other flags, in build/asan; also tsan, clang,'
	@echo '                   debug, release, m32'
	@echo 'check-arch         run unit tests, corpora and collectd emulated: arm64 armhf i386'
	@echo '                   s390x ppc64el riscv64 loong64, and with musl; ARCH="arm64 musl"'
	@echo '                   picks some'
	@echo 'check-vm           as root: install and try the package in virtual machines'
	@echo '                   with Debian 11 to 13, sid and its next kernel; VM=trixie picks,'
	@echo '                   as TESTS does; VM=sid-average builds a kernel that estimates'
	@echo '                   shared pages; VM=sid-mthp switches large folios on'
	@echo 'bench              measure cost and error (contrib/BENCHMARKS); BENCHFLAGS=--quick'
	@echo 'fuzz               run libFuzzer, FUZZ_SECONDS=60 each; FUZZ=fuzz_stat picks one'
	@echo 'ablate             what each rule of the estimate buys, in simulations'
	@echo 'soak               run 10,000 intervals under churn, and long unit tests'
	@echo '                   over four months of their clock: an hour'
	@echo 'coverage           show the lines and branches of plugin/core that unit tests reach;'
	@echo '                   fails below $(COVERAGE_FLOOR) % of the lines'
	@echo 'lint               check formatting, layering, lengths and shell scripts'
	@echo 'distcheck          test with sanitizers, valgrind, clang, and as a release build'
	@echo 'install            install to DESTDIR, PREFIX, PLUGINDIR=$(PLUGINDIR)'
	@echo 'uninstall          remove the files that install added'
	@echo 'deb rpm            build packages in build/, without tests'
	@echo 'packages-check     look for mistakes in the packages'
	@echo 'check-package      run the tests that belong to the build of a package'
	@echo 'release            make a tarball of the commit REV (HEAD) in build/'
	@echo 'clean              remove what was built'

-include $(CORE_OBJ:.o=.d) $(GLUE_OBJ:.o=.d) $(REPORT_OBJ:.o=.d) \
  $(TEST_OBJ:.o=.d)
