# hibloom. `make` builds and installs nothing; `make demo` and `make test`
# first install the packages that are missing (tests/tools/packages.sh).
#
#   make demo             two processes share one filter over real URLs
#   make test             the whole suite; `make check` is that without installing packages
#   make deb              Debian packages, in build/deb; [DEBFULLNAME= DEBEMAIL=] is their maintainer
#   make bench            measures it all anew: tests/bench/results.md; some minutes of an idle machine
#   make bench-against    BASE=COMMIT: that commit's library and this one take turns; some 8 minutes
#   make check-sanitize   the test programs under ASan and UBSan
#   make check-threads    what threads may do at once, under TSan
#   make check-served     the tests of one server, and of a cluster, on simulated ones
#   make sim              [SIM_SECONDS=60] [SIM_SEED=N] [SIM_TRACE=1] [SIM_FILE=...]: worlds of simulated servers and faults
#   make check-traces     a seed gives the same world each time, and with both compilers; worlds with sanitizers
#   make sim-breaks       each rule of the protocol is broken once: how long the simulator takes to find it
#   make check-long       what takes too long for each change: gcc -fanalyzer, everything with all items, then valgrind
#   make soak             [SOAK_SECONDS=3600]: eight processes on a cluster that fails over once a minute
#   make check-deb        what `make deb` makes; lintian has nothing to say, and version and maintainer are right
#   make check-machines   the unit tests on i386 and s390x
#   make check-musl       the library and the command with musl in place of glibc
#   make check-abi        the library against the last version's binary interface; `make abi` notes it for a release
#   make check-warnings   everything compiled by gcc and clang with -Werror
#   make check-format     what .clang-format would write differently
#   make check-bench      the benchmark, shortened: whether it runs, not what it says
#   make check-analysis   what clang-tidy and cppcheck find: nothing
#   make fuzz             [FUZZ_SECONDS=600]: each fuzz target for so long, with clang
#   make fuzz-corpus      what fuzzing found, made small, into tests/fuzz/corpus
#   make install          [DESTDIR=] [PREFIX=/usr/local] [LIBDIR=$(PREFIX)/lib]; make uninstall

VERSION := $(shell sed -n 's/^\#define HIBLOOM_VERSION "\(.*\)"/\1/p' include/hibloom/hibloom.h)
# Only a new major version may change what compiled programs rely on.
SOVERSION := $(firstword $(subst ., ,$(VERSION)))
SONAME  := libhibloom.so.$(SOVERSION)

CC      ?= cc
OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib

# Steps, replies and the functions of tables share one shape, so not each uses all it is given.
WARNINGS  := -Wall -Wextra -Wno-unused-parameter -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wvla \
             -Wformat-security
# FORTIFY works with optimisation only, not under a sanitizer, and not where it is chosen already.
FORTIFY   := $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))$(findstring -fsanitize,$(CFLAGS)),,\
               $(if $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS)))),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENED  := -fstack-protector-strong $(FORTIFY)
# What the loader has resolved is read-only from then on; all of it at the start.
HARDENED_LD := -Wl,-z,relro,-z,now
# A filter in a file, and a dump, may have more than 2 GB, on a 32-bit machine, too.
CPPFLAGS_ := -Iinclude -Ilib -Itests -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(CPPFLAGS)
# Sizes come from doubles, and are the same on every machine. clang would keep a product wider, where it can.
SAME      := -ffp-contract=off
CFLAGS_    = -std=c11 $(SAME) $(WARNINGS) $(HARDENED) -fvisibility=hidden $(PIC) -MMD -MP $(CFLAGS)
PIC       := -fPIC
LIBS      := -lhiredis -lz -lm
# Where an example finds its headers.
LIBXML_CPPFLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags libxml-2.0 2>/dev/null))

# With TLS where hiredis has it; HIBLOOM_TLS= builds without.
ifeq ($(origin HIBLOOM_TLS),undefined)
HIBLOOM_TLS := $(shell pkg-config --exists hiredis_ssl 'openssl >= 3' 2>/dev/null && echo yes)
endif
ifneq ($(HIBLOOM_TLS),)
CPPFLAGS_ += -DHIBLOOM_TLS
LIBS      := -lhiredis_ssl -lssl -lcrypto $(LIBS)
TLS_PC    := , hiredis_ssl, openssl
endif

# Why it is built without.
TLS_LACKS = $(shell pkg-config --version >/dev/null 2>&1 || { echo 'pkg-config is missing'; exit; }; \
              pkg-config --exists hiredis_ssl || { echo "hiredis $$(pkg-config --modversion hiredis)"; exit; }; \
              echo 'OpenSSL 3 is missing: libssl-dev')
TLS_SAYS  = $(if $(HIBLOOM_TLS),yes,no $(if $(filter file,$(origin HIBLOOM_TLS)),($(TLS_LACKS)),(HIBLOOM_TLS is empty)))

# Headers that it cannot do without, and the packages of Debian that have them.
NEEDED := hiredis/hiredis.h=libhiredis-dev xxhash.h=libxxhash-dev zlib.h=zlib1g-dev

# On a 32-bit x86 doubles are those of SSE2: the wider ones of its older unit give
# another size of a filter now and then, and other positions than PHP has.
ifneq ($(filter i386-% i486-% i586-% i686-%,$(shell $(CC) -dumpmachine)),)
CPPFLAGS_ += -msse2 -mfpmath=sse
# The compiler's helpers are in groups, and of each group a linker keeps one object's. Ours become local, so ours must stay.
NO_GROUPS := --force-group-allocation
endif

LIB_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard lib/*/*.c lib/*/*/*.c))
PROG_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard programs/*.c))
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c))
SUPPORT  := $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/support/socket_faults.c,$(wildcard tests/support/*.c)))
# The tiers whose programs take longest come first, so that no core is idle at the end.
PROGRAMS := $(patsubst tests/%.c,$(BUILD)/tests/%,\
                $(foreach tier,cluster share redis fault faults async cli unit,$(wildcard tests/$(tier)/*.c)))
TESTS    := $(PROGRAMS)
FUZZED   := $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
REPLAYS  := $(patsubst %,$(BUILD)/tests/fuzz/%,$(FUZZED))

all: $(BUILD)/libhibloom.a $(BUILD)/libhibloom.so $(BUILD)/hibloom

# One object in which only hibloom_ symbols are left global, as in the shared
# library: else our `uri_parse` would meet that of a program linked statically.
# With -flto gcc makes it, as machine code: what else is in there would not know of the symbols that become local.
ONE_OBJECT = $(if $(findstring -flto,$(CFLAGS)),$(CC) $(CFLAGS) -r -nostdlib -flinker-output=nolto-rel $(NO_GROUPS:%=-Wl,%),\
               $(LD) -r $(NO_GROUPS))
$(BUILD)/libhibloom.a: $(LIB_OBJ)
	$(ONE_OBJECT) -o $(BUILD)/libhibloom.o $^
	$(OBJCOPY) --localize-hidden $(BUILD)/libhibloom.o
	@rm -f $@
	$(AR) rcs $@ $(BUILD)/libhibloom.o

$(BUILD)/libhibloom.so.$(VERSION): $(LIB_OBJ)
	$(CC) -shared -Wl,-soname,$(SONAME) $(HARDENED_LD) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libhibloom.so: $(BUILD)/libhibloom.so.$(VERSION)
	ln -sf $(<F) $(BUILD)/$(SONAME)
	ln -sf $(SONAME) $@

$(PROG_OBJ): PIC := -fPIE
$(BUILD)/hibloom: $(PROG_OBJ) $(BUILD)/lib/base/nearest.o $(BUILD)/libhibloom.a
	$(CC) -pie $(HARDENED_LD) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# What knows of TLS is compiled anew where that has come or gone.
$(addprefix $(BUILD)/,lib/net/settings.o lib/net/drivers/tls.o tests/redis/tls.o tests/fault/tls.o tests/async/tls.o tests/unit/settings.o tests/support/tls_front.o): $(BUILD)/.tls
$(BUILD)/.tls: ask
	@mkdir -p $(@D)
	@echo '$(HIBLOOM_TLS)' | cmp -s - $@ || { echo 'TLS: $(TLS_SAYS)'; echo '$(HIBLOOM_TLS)' >$@; }

# Looked for before anything is compiled.
$(LIB_OBJ): | $(BUILD)/.needed
$(BUILD)/.needed:
	@mkdir -p $(@D)
	@missing=; for needed in $(NEEDED); do \
	    echo "#include <$${needed%=*}>" | $(CC) $(CPPFLAGS_) -E -x c - >/dev/null 2>&1 || missing="$$missing $${needed#*=}"; \
	done; \
	[ -z "$$missing" ] || { printf 'Missing:%s\nOn Debian and Ubuntu: sudo apt-get install%s\n' "$$missing" "$$missing" >&2; exit 1; }
	@touch $@

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_) $(CFLAGS_) -c -o $@ $<

$(BUILD)/examples/async_libevent $(BUILD)/examples/service: MORE := -levent_core
$(BUILD)/examples/async_libuv: MORE := -luv
$(BUILD)/examples/async_libev: MORE := -lev
$(BUILD)/examples/shield: MORE := -lsqlite3
$(BUILD)/examples/crawl: MORE := -lcurl -lxml2
$(BUILD)/examples/crawl.o: CPPFLAGS_ += $(LIBXML_CPPFLAGS)
$(BUILD)/examples/%: $(BUILD)/examples/%.o $(BUILD)/libhibloom.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(MORE) $(LIBS)

# A fuzz target without libFuzzer: it runs its corpus.
$(REPLAYS): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay.o $(LIB_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread $(LIBS)

# A test runs for a moment: more of the compiler's time is not worth it.
$(PROGRAMS:%=%.o) $(SUPPORT): CFLAGS_ += -O1

# On four event loops.
LOOPS    := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/async/loops/*.c))
$(filter $(BUILD)/tests/async/%,$(PROGRAMS)): $(BUILD)/tests/async/%: $(BUILD)/tests/async/%.o $(LOOPS) $(SUPPORT) $(LIB_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka -lpthread -levent_core -luv -lev $(LIBS)

# It stocks the database that the shield stands before.
$(BUILD)/tests/cli/starts: MORE := -lsqlite3

# With the library's objects, whose inner functions the unit tests call.
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUPPORT) $(LIB_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka -lpthread $(MORE) $(LIBS)

# In the place of the C library's.
$(BUILD)/tests/faults/sockets: $(BUILD)/tests/support/socket_faults.o

# Of what the command and the headers say.
MAN      := $(addprefix $(BUILD)/man/,hibloom.1 hibloom.3 hibloom_async.3 hibloom-spec.5)
man: $(MAN)
$(MAN): $(BUILD)/hibloom $(wildcard packaging/man/* include/hibloom/*.h)
	@mkdir -p $(@D)
	packaging/man/man.sh $(BUILD)/hibloom $(VERSION) $(@F) >$@.part
	mv $@.part $@

examples: $(EXAMPLES)
tests: $(TESTS) $(REPLAYS)

ON_ALL_CORES = $(MAKE) -s --no-print-directory -j$(shell nproc)

# ---- The two commands --------------------------------------------------------

demo:
	@tests/tools/packages.sh demo
	@$(ON_ALL_CORES) all
	@tests/tools/with-redis.sh tests/tools/demo.sh $(BUILD)/hibloom

test:
	@echo 'This takes some 3 minutes on two cores.'
	@tests/tools/packages.sh test
	@$(ON_ALL_CORES) check

# ---- Debian packages ---------------------------------------------------------

# Into $(BUILD)/deb.
deb:
	@tests/tools/packages.sh deb
	@packaging/deb.sh $(BUILD) $(VERSION)

# ---- The benchmark -----------------------------------------------------------

# The bench is linked with the library's objects: it prints the cost model's figures, too, which are not for users. It has
# an encoding.o of its own.
BENCH     := $(BUILD)/tests/bench
BENCH_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/*.c) \
                 $(addprefix tests/support/,redis_server.c temp_dir.c net.c resp.c with_options.c))

$(BENCH)/bench: $(BENCH_OBJ) $(filter-out %/redis/encoding.o,$(LIB_OBJ))
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl -levent_core $(LIBS)

benches: $(BENCH)/bench $(BUILD)/tests/soak/soak

bench:
	@tests/tools/packages.sh bench
	@$(ON_ALL_CORES) benches
	@tests/bench/run.sh $(BENCH)/bench $(BUILD)/bench tests/bench

# Both builds of the library are shared objects, loaded by one process.
bench-against:
	@$(ON_ALL_CORES) benches $(BUILD)/libhibloom.so
	@tests/bench/against.sh '$(BASE)' $(BUILD)

# ---- Checks: nothing below installs a package --------------------------------

# The tests would find the command by themselves, but by way of /proc.
RUN_REPLAYS = $(foreach name,$(FUZZED),"$(BUILD)/tests/fuzz/$(name) tests/fuzz/corpus/$(name)")
RUN_TESTS = HIBLOOM_PROGRAM=$(abspath $(BUILD))/hibloom tests/tools/run-tests.sh

# Those that take longest first.
check: all man examples tests
	@$(RUN_TESTS) tests/model/run.py \
	    "$(SIM)/sim 3000w 1" "$(SIM)/sim $(wildcard tests/sim/cases/*)" \
	    "$(SIM)/fidelity 60000" "$(SIM)/fidelity 30000 1 cluster" \
	    "tests/tools/with-redis.sh tests/tools/completion-test.sh $(BUILD)" \
	    "tests/tools/with-redis.sh tests/tools/install-test.sh $(BUILD)" \
	    $(TESTS) $(RUN_REPLAYS) \
	    "tests/structure/includes.py docs/internals.md lib" \
	    "tests/structure/symbols.sh lib $(BUILD)/lib" \
	    "tests/structure/words.py programs/words.c lib" \
	    "tests/structure/cpp.sh include" \
	    "tests/structure/breaks.sh tests/sim/breaks lib" \
	    "tests/structure/steps.awk $(wildcard lib/redis/*.c lib/filter/*.c)" \
	    $(if $(filter file,$(origin CFLAGS)),"tests/structure/hardened.sh $(BUILD)/libhibloom.so $(BUILD)/hibloom") \
	    tests/structure/needs.sh \
	    tests/tools/compose-test.sh \
	    "tests/tools/man-test.sh $(BUILD)" \
	    "tests/tools/with-redis.sh tests/tools/docs.py include $(BUILD) $(LDFLAGS) $(LIBS)"

check-programs: all examples tests
	@$(RUN_TESTS) $(RUN_REPLAYS) $(filter-out $(PASSED_OVER),$(TESTS))

# Clang here, as the suite proper is gcc's: so it passes with both, and is compiled by both with -Werror. Left out are
# the programs that wait for others (share), the longest walk over system calls, and those that count or read command
# lines: `make test` has them.
NOT_SANITIZED := share/% faults/sockets cli/usage cli/bench async/links_cost redis/guard_cost redis/rates
SANITIZED = BUILD=$(BUILD)-asan CC=clang \
    CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -Werror'
check-sanitize:
	@$(ON_ALL_CORES) check-programs benches $(SANITIZED) PASSED_OVER='$(NOT_SANITIZED:%=$(BUILD)-asan/tests/%)'

# The programs of tests/redis on the simulated server, and those of tests/cluster that only move slots. It has no ACL,
# replicas, hashes, lists, host names, statistics, limit of memory, or strings that another one sends it; and some end
# or pause its process.
NOT_SERVED := bulk connecting damage guard_cost list many merge presets presets_changes replace tls
check-served: all tests
	@HIBLOOM_TEST_SERVER=$(abspath $(SIM))/serve $(RUN_TESTS) \
	    $(BUILD)/tests/cluster/filter \
	    $(filter-out $(NOT_SERVED:%=$(BUILD)/tests/redis/%),$(filter $(BUILD)/tests/redis/%,$(TESTS)))

# The programs whose threads share a filter, or have a store each.
THREADED := $(addprefix $(BUILD)-tsan/tests/,unit/threads faults/threads)
check-threads:
	@$(ON_ALL_CORES) $(THREADED) BUILD=$(BUILD)-tsan CC=clang CFLAGS='-O1 -g -fsanitize=thread'
	@$(RUN_TESTS) $(THREADED)

# An hour of failovers, not a part of any check: tests/README.md.
SOAK_SECONDS ?= 3600
soak: $(BUILD)/tests/soak/soak
	@SOAK_SECONDS=$(SOAK_SECONDS) $(BUILD)/tests/soak/soak

# Everything with all items, and faults at every place. Then under valgrind,
# which does not follow the children that a test execs: so it shows nothing of the command and of sharing. Left out, too, are
# those that count answers in memory or guards, or replace malloc, and arithmetic.
NOT_UNDER_VALGRIND := cli/% share/% unit/sizing redis/%rates redis/guard_cost fault/memory async/memory async/links_cost
check-long: all examples $(PROGRAMS)
	@$(ON_ALL_CORES) BUILD=$(BUILD)-analysis CC=gcc CFLAGS='-O1 -fanalyzer -Werror $(NOT_BY_GCC)' analysed
	@HIBLOOM_TEST_LONG=1 TEST_TIMEOUT=86400 $(RUN_TESTS) tests/model/run.py $(PROGRAMS)
	@TEST_TIMEOUT=1200 \
	TEST_UNDER='valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --error-exitcode=99' \
	    $(ON_ALL_CORES) check-programs PASSED_OVER='$(NOT_UNDER_VALGRIND:%=$(BUILD)/tests/%)'

WARNED_BY ?= gcc clang
check-warnings:
	@for cc in $(WARNED_BY); do \
	    $(ON_ALL_CORES) all examples tests benches BUILD=$(BUILD)-$$cc CC=$$cc CFLAGS='-O2 -g -Werror' || exit 1; \
	done
	@for cxx in g++ clang++; do \
	    $$cxx -std=c++17 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -Iinclude -fsyntax-only \
	        tests/install/outside.cpp examples/unique.cpp || exit 1; \
	done

# What programs compiled with the last version rely on; `make abi` notes it anew for a release.
check-abi: all
	@tests/tools/abi.sh check $(BUILD)
abi: all
	@tests/tools/abi.sh write $(BUILD)

# The packages keep to Debian's rules, and the files in them are where they belong.
check-deb:
	@DEBFULLNAME='Pat Packager' DEBEMAIL=pat@packages.example $(MAKE) -s --no-print-directory deb
	@lintian --allow-root --fail-on error,warning $(BUILD)/deb/*.deb
	@tests/tools/deb-fields.sh $(BUILD)/deb '$(VERSION)' 'Pat Packager <pat@packages.example>'

# A 32-bit machine, and one that is big-endian.
check-machines:
	@tests/tools/machines.sh $(BUILD) $(patsubst $(BUILD)/%,%,$(filter $(BUILD)/tests/unit/%,$(TESTS)))

# musl in place of glibc.
check-musl:
	@tests/tools/musl.sh $(BUILD)
musl-objects: $(PROG_OBJ)

check-format:
	@clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp')

# Three that find what compilers and tests do not. Where they are wrong, the code
# is written so that they see it, or the reason is beside it, or, of a kind, in
# .clang-tidy and here:
#   analyzer-null-dereference, analyzer-malloc-leak   gcc 12 does not follow values through functions of another
#       file, or through copies of a struct. clang-tidy looks for the first; ASan, valgrind and tests/fault/memory for leaks
#   legacyUninitvar, uninitvar   take what is handed on to be filled for what is read; both compilers look for that
#   funcArgOrderDifferent        takes parameters that a declaration leaves unnamed for others
NOT_BY_GCC = -Wno-analyzer-null-dereference -Wno-analyzer-malloc-leak
ANALYSED = $(wildcard lib/*/*.c lib/*/*/*.c programs/*.c examples/*.c)
CPPCHECK = cppcheck -j2 -q --std=c11 --language=c --library=posix,gnu --enable=warning,performance,portability \
           --inline-suppr --error-exitcode=1 --suppress=legacyUninitvar --suppress=uninitvar \
           --suppress=funcArgOrderDifferent
check-analysis:
	@$(CPPCHECK) $(CPPFLAGS_) $(ANALYSED) $(wildcard include/hibloom/*.h)
	@printf '%s\n' $(ANALYSED) | xargs -P2 -n8 sh -c 'clang-tidy --quiet "$$@" -- -std=c11 $(CPPFLAGS_) $(LIBXML_CPPFLAGS)' sh
analysed: $(ANALYSED:%.c=$(BUILD)/%.o)

check-bench: benches
	@mkdir -p $(BUILD)/bench-short/results
	@BENCH_SCALE=0.02 tests/bench/run.sh $(BENCH)/bench $(BUILD)/bench-short $(BUILD)/bench-short/results

# ---- Fuzzing -----------------------------------------------------------------

# Objects that tell libFuzzer what is run; the fuzzer itself is linked to its
# target only. What it finds is kept in FUZZ/corpus, beside the one in git.
FUZZ         := $(BUILD)-fuzz
FUZZ_SECONDS ?= 600
FUZZERS      := $(FUZZED:%=$(FUZZ)/fuzz-%)
FUZZ_FLAGS   := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_MAKE     = $(ON_ALL_CORES) BUILD=$(FUZZ) CC=clang CFLAGS='$(FUZZ_FLAGS) -fsanitize=fuzzer-no-link'

# For the make that has BUILD=$(FUZZ).
fuzzers: $(FUZZED:%=$(BUILD)/fuzz-%)
$(BUILD)/fuzz-%: $(BUILD)/tests/fuzz/%.o $(LIB_OBJ)
	$(CC) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -o $@ $^ $(LIBS)

# A finding is left in $(FUZZ), and ends it.
fuzz:
	@$(FUZZ_MAKE) fuzzers
	@for name in $(FUZZED); do \
	    mkdir -p $(FUZZ)/corpus/$$name && \
	    $(FUZZ)/fuzz-$$name -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -print_final_stats=1 -verbosity=0 \
	        -artifact_prefix=$(FUZZ)/$$name- $(FUZZ)/corpus/$$name tests/fuzz/corpus/$$name || exit 1; \
	done

# The fewest files that reach all the code that those of both places reach, beside
# the ones that have a name of ours; the fuzzer's has 40 digits.
HASHED := ????????????????????????????????????????
fuzz-corpus:
	@$(FUZZ_MAKE) fuzzers
	@for name in $(FUZZED); do \
	    mkdir -p $(FUZZ)/corpus/$$name && cp tests/fuzz/corpus/$$name/* $(FUZZ)/corpus/$$name && \
	    rm -f tests/fuzz/corpus/$$name/$(HASHED) && \
	    $(FUZZ)/fuzz-$$name -merge=1 -use_counters=0 -max_len=4096 tests/fuzz/corpus/$$name \
	        $(FUZZ)/corpus/$$name 2>$(FUZZ)/merged.log || { cat $(FUZZ)/merged.log; exit 1; }; \
	done

# ---- SIM: simulated servers, network and clock under the library: tests/sim/sim.c ------------

SIM       := $(BUILD)/tests/sim
SIM_NODE  := $(patsubst %,$(SIM)/%.o,node keyspace answers keys values bits server script)
SIM_WORLD := net fiber loop world servers slots outages wires faults plan draw decide
SIM_CALLS := sim client stores calls verbs memory oracle names handles items times windows watch causes left told reader
SIM_OBJ   := $(SIM_NODE) $(patsubst %,$(SIM)/%.o,$(SIM_WORLD) $(SIM_CALLS))
SIM_LIBS  := -lluajit-5.1
# What the library and hiredis call of libc: the simulator's in their place. nanosleep has none, and would not link.
SIM_WRAPS := __poll_chk clock_gettime close connect fcntl freeaddrinfo getaddrinfo getentropy getpeername getsockopt nanosleep \
             poll read recv send setsockopt socket write
SIM_LINK   = $(SIM_WRAPS:%=-Wl,--wrap=%) -Wl,-Bstatic $(filter -lhiredis%,$(LIBS)) -Wl,-Bdynamic \
             $(filter-out -lhiredis%,$(LIBS)) $(SIM_LIBS)
# For speed.
$(SIM_OBJ): HARDENED :=
$(SIM_OBJ): CFLAGS_ += -O3 -fno-plt
$(SIM_OBJ): PIC := -fPIE
$(SIM)/script.o: CPPFLAGS_ += $(shell pkg-config --cflags luajit 2>/dev/null)
$(SIM)/sim: $(SIM_OBJ) $(LIB_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LINK)
$(SIM)/fidelity: $(SIM)/fidelity.o $(SIM_NODE) $(SUPPORT) $(LIB_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LIBS) -lcmocka -lpthread $(LIBS)
$(SIM)/serve: $(SIM)/serve.o $(SIM_NODE)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(SIM_LIBS) -lm
tests: $(SIM)/sim $(SIM)/fidelity $(SIM)/serve

# SIM_SEED: the first world; else the time decides. SIM_FILE: replays these; SIM_TRACE=1: tells the story of one world.
SIM_SECONDS ?= 60
sim: $(SIM)/sim
	@$(SIM)/sim $(if $(SIM_TRACE),-t) $(or $(SIM_FILE),$(if $(SIM_TRACE),$(SIM_SEED),$(SIM_SECONDS) $(SIM_SEED)))

# Clang and the sanitizers here, as the suite proper is gcc's. A client that is killed leaves its memory behind.
check-traces: SANE = ASAN_OPTIONS=detect_leaks=0
check-traces: $(SIM)/sim
	@$(ON_ALL_CORES) $(BUILD)-asan/tests/sim/sim $(SANITIZED)
	@$(SANE) tests/sim/traces.sh $(SIM)/sim $(BUILD)-asan/tests/sim/sim
	@$(SANE) $(RUN_TESTS) "$(BUILD)-asan/tests/sim/sim 1000w 1" "$(BUILD)-asan/tests/sim/sim $(wildcard tests/sim/cases/*)"

# Each rule of the protocol is broken once, and has to be found.
sim-breaks: $(SIM)/sim
	@tests/sim/breaks.sh $(SIM) $(CC) '$(CPPFLAGS_)' '$(CFLAGS_)' '$(SIM_LINK)'

# ---- Installation ------------------------------------------------------------

MANDIR  := $(PREFIX)/share/man
BASH_COMPLETION := $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETION  ?= $(PREFIX)/share/zsh/site-functions
# CMake's files say where things are as seen from their own place.
PREFIX_FROM_LIBDIR = $(shell realpath -ms --relative-to='$(LIBDIR)' '$(PREFIX)')
CMAKE_LIBS = $(shell printf '%s;' $(patsubst -l%,%,$(LIBS)))
# Each function, and each type, of a header has a page: that of its header.
NAMES = sed -n 's/^HIBLOOM_[AC][A-Z]* .*[ *]\(hibloom_[a-z_]*\)(.*/\1/p; s/^} \(hibloom_[a-z_]*\);/\1/p'
install: all man
	install -d $(DESTDIR)$(PREFIX)/include/hibloom/adapters $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/bin
	install -d $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man3 $(DESTDIR)$(MANDIR)/man5
	install -m 644 $(BUILD)/man/hibloom.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(BUILD)/man/hibloom.3 $(BUILD)/man/hibloom_async.3 $(DESTDIR)$(MANDIR)/man3
	install -m 644 $(BUILD)/man/hibloom-spec.5 $(DESTDIR)$(MANDIR)/man5
	install -d $(DESTDIR)$(BASH_COMPLETION) $(DESTDIR)$(ZSH_COMPLETION)
	install -m 644 packaging/completion/hibloom.bash $(DESTDIR)$(BASH_COMPLETION)/hibloom
	install -m 644 packaging/completion/_hibloom $(DESTDIR)$(ZSH_COMPLETION)
	for name in $$($(NAMES) include/hibloom/hibloom.h); do ln -sf hibloom.3 $(DESTDIR)$(MANDIR)/man3/$$name.3; done
	for name in $$($(NAMES) include/hibloom/async.h); do ln -sf hibloom_async.3 $(DESTDIR)$(MANDIR)/man3/$$name.3; done
	install -m 644 include/hibloom/hibloom.h include/hibloom/async.h include/hibloom/hibloom.hpp \
	    $(DESTDIR)$(PREFIX)/include/hibloom
	install -m 644 include/hibloom/adapters/*.h $(DESTDIR)$(PREFIX)/include/hibloom/adapters
	install -m 644 $(BUILD)/libhibloom.a $(DESTDIR)$(LIBDIR)
	rm -f $(DESTDIR)$(LIBDIR)/$(SONAME).* # ldconfig would take 1.0.0-rc1 for newer than 1.0.0
	install -m 755 $(BUILD)/libhibloom.so.$(VERSION) $(DESTDIR)$(LIBDIR)
	ln -sf libhibloom.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libhibloom.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|; s|@VERSION@|$(VERSION)|; s|@TLS@|$(TLS_PC)|' \
	    lib/hibloom.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/hibloom.pc
	install -d $(DESTDIR)$(LIBDIR)/cmake/hibloom
	for name in hibloomConfig hibloomConfigVersion; do \
	    sed 's|@PREFIX_FROM_LIBDIR@|$(PREFIX_FROM_LIBDIR)|; s|@VERSION@|$(VERSION)|; s|@SONAME@|$(SONAME)|; s|@LIBS@|$(CMAKE_LIBS)|' \
	        packaging/cmake/$$name.cmake.in > $(DESTDIR)$(LIBDIR)/cmake/hibloom/$$name.cmake || exit 1; \
	done
	chmod 644 $(DESTDIR)$(LIBDIR)/pkgconfig/hibloom.pc $(DESTDIR)$(LIBDIR)/cmake/hibloom/*.cmake
	install -m 755 $(BUILD)/hibloom $(DESTDIR)$(PREFIX)/bin

uninstall:
	rm -rf '$(DESTDIR)$(PREFIX)/include/hibloom' '$(DESTDIR)$(LIBDIR)/cmake/hibloom' # a blank in them makes no other path
	rm -f $(DESTDIR)$(LIBDIR)/libhibloom.* $(DESTDIR)$(LIBDIR)/pkgconfig/hibloom.pc $(DESTDIR)$(PREFIX)/bin/hibloom
	rm -f $(DESTDIR)$(MANDIR)/man1/hibloom.1 $(DESTDIR)$(MANDIR)/man3/hibloom.3 $(DESTDIR)$(MANDIR)/man3/hibloom_*.3 \
	    $(DESTDIR)$(MANDIR)/man5/hibloom-spec.5 $(DESTDIR)$(BASH_COMPLETION)/hibloom $(DESTDIR)$(ZSH_COMPLETION)/_hibloom

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz $(BUILD)-analysis $(BUILD)-tsan $(BUILD)-gcc $(BUILD)-clang $(BUILD)-i386 $(BUILD)-s390x $(BUILD)-musl

.PHONY: sim sim-breaks check-traces ask all man examples tests demo test benches bench bench-against check check-programs check-sanitize check-served check-threads \
        check-long soak check-machines check-musl musl-objects check-abi abi deb check-deb check-warnings check-format check-bench check-analysis analysed fuzz fuzzers fuzz-corpus install uninstall clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
