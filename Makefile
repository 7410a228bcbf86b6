# hibloom. `make` builds and installs nothing; `make demo` and `make test`
# first install the packages that are missing (tests/tools/packages.sh).
#
#   make demo             two processes share one filter over real URLs
#   make test             the whole suite; `make check` is that without installing packages
#   make bench            measures it all anew: tests/bench/results.md; some minutes of an idle machine
#   make check-sanitize   the test programs under ASan and UBSan
#   make check-threads    what threads may do at once, under TSan
#   make check-valgrind   the test programs under valgrind
#   make check-warnings   everything compiled by gcc and clang with -Werror
#   make check-format     what .clang-format would write differently
#   make check-bench      the benchmark, shortened: whether it runs, not what it says
#   make install          [DESTDIR=] [PREFIX=/usr/local] [LIBDIR=$(PREFIX)/lib]; make uninstall

VERSION := $(shell sed -n 's/^\#define HIBLOOM_VERSION "\(.*\)"/\1/p' include/hibloom/hibloom.h)
SONAME  := libhibloom.so.0

CC      ?= cc
OBJCOPY ?= objcopy
CFLAGS  ?= -O2 -g
BUILD   ?= build
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib

# Steps, replies and the functions of tables share one shape, so not each uses all it is given.
WARNINGS  := -Wall -Wextra -Wno-unused-parameter -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wvla
CPPFLAGS_ := -Iinclude -Ilib -Itests -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_   := -std=c11 $(WARNINGS) -fvisibility=hidden -fPIC -MMD -MP $(CFLAGS)
LIBS      := -lhiredis -lz -lm

LIB_OBJ  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard lib/*/*.c))
PROG_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard programs/*.c))
EXAMPLES := $(patsubst %.c,$(BUILD)/%,$(wildcard examples/*.c))
SUPPORT  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
# The tiers that take longest come first, so that no core is idle at the end.
TESTS    := $(patsubst tests/%.c,$(BUILD)/tests/%,$(foreach tier,cluster share redis fault unit cli,$(wildcard tests/$(tier)/*.c)))

all: $(BUILD)/libhibloom.a $(BUILD)/libhibloom.so $(BUILD)/hibloom

# One object in which only hibloom_ symbols are left global, as in the shared
# library: else our `uri_parse` would meet that of a program linked statically.
$(BUILD)/libhibloom.a: $(LIB_OBJ)
	$(LD) -r -o $(BUILD)/libhibloom.o $^
	$(OBJCOPY) --localize-hidden $(BUILD)/libhibloom.o
	@rm -f $@
	$(AR) rcs $@ $(BUILD)/libhibloom.o

$(BUILD)/libhibloom.so.$(VERSION): $(LIB_OBJ)
	$(CC) -shared -Wl,-soname,$(SONAME) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libhibloom.so: $(BUILD)/libhibloom.so.$(VERSION)
	ln -sf $(<F) $(BUILD)/$(SONAME)
	ln -sf $(SONAME) $@

$(BUILD)/hibloom: $(PROG_OBJ) $(BUILD)/libhibloom.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_) $(CFLAGS_) -c -o $@ $<

$(BUILD)/examples/%: $(BUILD)/examples/%.o $(BUILD)/libhibloom.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# With the library's objects, whose inner functions the unit tests call.
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(SUPPORT) $(LIB_OBJ)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcmocka -lpthread $(LIBS)

examples: $(EXAMPLES)
tests: $(TESTS)

# ---- The two commands --------------------------------------------------------

demo:
	@tests/tools/packages.sh demo
	@$(MAKE) -s --no-print-directory all
	@tests/tools/with-redis.sh tests/tools/demo.sh $(BUILD)/hibloom

test:
	@echo 'This takes some 4 minutes on two cores.'
	@tests/tools/packages.sh test
	@$(MAKE) -s --no-print-directory check

# ---- The benchmark -----------------------------------------------------------

# The bench is linked as a user's program is, with the library as it is
# installed; the replay knows nothing of it, and is linked with nothing.
BENCH     := $(BUILD)/tests/bench
BENCH_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(filter-out tests/bench/replay.c,$(wildcard tests/bench/*.c)) \
                 $(addprefix tests/support/,redis_server.c redis_cluster.c certificates.c temp_dir.c net.c resp.c))

$(BENCH)/bench: $(BENCH_OBJ) $(BUILD)/libhibloom.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread $(LIBS)

$(BENCH)/replay: $(BENCH)/replay.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

benches: $(BENCH)/bench $(BENCH)/replay

bench:
	@tests/tools/packages.sh bench
	@$(MAKE) -s --no-print-directory benches
	@tests/bench/run.sh $(BENCH)/bench $(BUILD)/bench tests/bench

# ---- Checks: nothing below installs a package --------------------------------

# The tests would find the command by themselves, but by way of /proc.
RUN_TESTS = HIBLOOM_PROGRAM=$(abspath $(BUILD))/hibloom tests/tools/run-tests.sh

check: all examples tests
	@$(RUN_TESTS) tests/model/run.py $(TESTS) \
	    "tests/structure/includes.py README.md lib" \
	    "tests/structure/symbols.sh lib $(BUILD)/lib" \
	    tests/tools/compose-test.sh \
	    "tests/tools/install-test.sh $(BUILD)" \
	    "tests/tools/with-redis.sh tests/tools/readme.sh README.md $(BUILD)/libhibloom.a $(LDFLAGS) $(LIBS)"

check-programs: all tests
	@$(RUN_TESTS) $(TESTS)

# Clang here, as the suite proper is gcc's: so it passes with both.
# HIBLOOM_TEST_SLOW has the tests use fewer items.
check-sanitize:
	@HIBLOOM_TEST_SLOW=1 $(MAKE) -s --no-print-directory check-programs BUILD=$(BUILD)-asan CC=clang \
	    CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all'

# The one program whose threads share a filter.
check-threads:
	@$(MAKE) -s --no-print-directory $(BUILD)-tsan/tests/unit/threads BUILD=$(BUILD)-tsan CC=clang \
	    CFLAGS='-O1 -g -fsanitize=thread'
	@$(RUN_TESTS) $(BUILD)-tsan/tests/unit/threads

# Children that a test execs (Redis, PHP, Python) are not followed, those that
# it only forks are.
check-valgrind:
	@HIBLOOM_TEST_SLOW=1 TEST_TIMEOUT=600 \
	TEST_UNDER='valgrind -q --leak-check=full --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect --error-exitcode=99' \
	    $(MAKE) -s --no-print-directory check-programs

check-warnings:
	@for cc in gcc clang; do \
	    $(MAKE) -s --no-print-directory all examples tests benches BUILD=$(BUILD)-$$cc CC=$$cc CFLAGS='-O2 -g -Werror' || exit 1; \
	done

check-format:
	@clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

check-bench: benches
	@mkdir -p $(BUILD)/bench-short/results
	@BENCH_SCALE=0.02 tests/bench/run.sh $(BENCH)/bench $(BUILD)/bench-short $(BUILD)/bench-short/results

# ---- Installation ------------------------------------------------------------

install: all
	install -d $(DESTDIR)$(PREFIX)/include/hibloom $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/bin
	install -m 644 include/hibloom/hibloom.h $(DESTDIR)$(PREFIX)/include/hibloom
	install -m 644 $(BUILD)/libhibloom.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(BUILD)/libhibloom.so.$(VERSION) $(DESTDIR)$(LIBDIR)
	ln -sf libhibloom.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libhibloom.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' \
	    lib/hibloom.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/hibloom.pc
	install -m 755 $(BUILD)/hibloom $(DESTDIR)$(PREFIX)/bin

uninstall:
	rm -rf $(DESTDIR)$(PREFIX)/include/hibloom
	rm -f $(DESTDIR)$(LIBDIR)/libhibloom.* $(DESTDIR)$(LIBDIR)/pkgconfig/hibloom.pc $(DESTDIR)$(PREFIX)/bin/hibloom

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-gcc $(BUILD)-clang

.PHONY: all examples tests demo test benches bench check check-programs check-sanitize check-threads check-valgrind \
        check-warnings check-format check-bench install uninstall clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
