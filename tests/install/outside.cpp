/* The C++ header from outside the tree, on a memory store: what it adds to hibloom.h.
 * Built and run by tests/tools/install-test.sh, as C++17 and as C++20. */
#include <hibloom/hibloom.hpp>

#include <array>
#include <iostream>
#include <list>
#include <sstream>
#if __cplusplus >= 202002L
#include <span>
#endif

using namespace hibloomxx;

static_assert(!std::is_copy_constructible_v<store> && std::is_nothrow_move_constructible_v<store>);
static_assert(!std::is_copy_constructible_v<filter> && std::is_nothrow_move_constructible_v<filter>);

static int failures;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            std::cerr << "outside.cpp:" << __LINE__ << ": " #condition "\n"; \
            failures++; \
        } \
    } while (0)

/* The status that it throws; OK if it does not. `words` is what it says. */
template <class Function> static hibloom_status thrown_by(Function function, std::string *words = nullptr)
{
    try {
        function();
    } catch (const error &e) {
        if (words != nullptr)
            *words = e.what();
        return e.status();
    }
    return HIBLOOM_OK;
}

/* Whether it throws this status, in words that begin so and end with those of the status. */
template <class Function> static bool throws(Function function, hibloom_status status, const char *begin)
{
    std::string words;
    const hibloom_status thrown = thrown_by(function, &words);
    const std::string end = hibloom_strerror(status);

    return thrown == status && words.rfind(begin, 0) == 0 && words.size() >= end.size() &&
           words.compare(words.size() - end.size(), end.size(), end) == 0;
}

static void a_failure_is_thrown_in_its_own_words()
{
    store memory = store::connect("memory:");
    filter some = filter::open(memory, "some", "capacity=100 error=0.01");
    std::string words;

    CHECK(thrown_by([&] { filter::open(memory, "nobody"); }, &words) == HIBLOOM_ENOTFOUND);
    CHECK(words == memory.error() + std::string(": ") + hibloom_strerror(HIBLOOM_ENOTFOUND));
    CHECK(words.find("'nobody'") != std::string::npos);
    CHECK(throws([&] { filter::open(memory, "some", "capacity=7 error=0.01"); }, HIBLOOM_EMISMATCH, memory.error()));
    CHECK(throws([&] { some.remove("x"); }, HIBLOOM_ENOTSUP, memory.error()));
    CHECK(thrown_by([&] { spec_check("bits=abc"); }, &words) == HIBLOOM_EINVAL);
    CHECK(words.find("bits") != std::string::npos);
    CHECK(thrown_by([&] { plan("bits=abc", 1); }, &words) == HIBLOOM_EINVAL && words.find("bits") != std::string::npos);
    CHECK(throws([] { file_spec("/nowhere/file"); }, HIBLOOM_EIO, "/nowhere/file: "));
    CHECK(error(HIBLOOM_EBUSY, "").is_retryable() && !error(HIBLOOM_ENOTFOUND, "").is_retryable());
    CHECK(error(HIBLOOM_EBUSY, "").what() == std::string(hibloom_strerror(HIBLOOM_EBUSY))); /* no words: alone */
}

static void a_connection_takes_options_and_says_why_it_failed()
{
    setup with = {{"client_name", "outside"}, {"connect_timeout", "2s"}};
    static std::string logged;
    std::string words;

    with.log = [](hibloom_log_level, const char *line, void *data) { *static_cast<std::string *>(data) += line; };
    with.data = &logged;
    CHECK(thrown_by([&] { store::connect("unix:///nowhere/redis.sock", with); }, &words) == HIBLOOM_EIO);
    CHECK(words.find("/nowhere/redis.sock") != std::string::npos && logged.find("/nowhere") != std::string::npos);
    CHECK(thrown_by([] { store::connect("memory:", {{"conect_timeout", "2s"}}); }, &words) == HIBLOOM_EINVAL);
    CHECK(words.find("conect_timeout") != std::string::npos);
    const store memory = store::connect("memory:", {{"client_name", "outside"}});
    CHECK(memory.option("client_name") == "outside" && !memory.option("no such option"));
    CHECK(thrown_by([] { store::borrow(nullptr); }) == HIBLOOM_EINVAL);
}

static void texts_with_a_zero_byte_are_refused()
{
    store memory = store::connect("memory:");
    const std::string zero("a\0b", 3);
    const char *const refused = "a name, or another text, has a zero byte: ";

    filter some = filter::open(memory, "a", "capacity=100 error=0.01");
    CHECK(throws([&] { filter::open(memory, zero); }, HIBLOOM_EINVAL, refused));
    CHECK(throws([&] { filter::open(memory, "a", zero); }, HIBLOOM_EINVAL, refused));
    CHECK(throws([&] { filter::open_many(memory, {"a", zero}); }, HIBLOOM_EINVAL, refused));
    CHECK(throws([&] { memory.list(zero); }, HIBLOOM_EINVAL, refused));
    CHECK(throws([&] { some.save(zero); }, HIBLOOM_EINVAL, refused));
    CHECK(throws([&] { store::connect(zero); }, HIBLOOM_EINVAL, refused));
    CHECK(throws([&] { store::connect("memory:", {{"client_name", zero}}); }, HIBLOOM_EINVAL, refused));
}

static void times_below_0_are_refused()
{
    using namespace std::chrono;
    store memory = store::connect("memory:");
    filter some = filter::open(memory, "a", "capacity=100 error=0.01");
    const char *const refused = "a time is below 0: ";

    CHECK(throws([&] { memory.deadline(std::chrono::milliseconds(-3)); }, HIBLOOM_ERANGE, refused));
    CHECK(throws([&] { some.near_cache(seconds(-1)); }, HIBLOOM_ERANGE, refused));
    CHECK(throws([&] { some.expire(hours(-1)); }, HIBLOOM_ERANGE, refused));
    memory.deadline(std::chrono::milliseconds::max());
    some.near_cache(minutes(1));
}

static void what_is_empty_is_refused()
{
    store memory = store::connect("memory:"), moved = std::move(memory);
    filter seen = filter::open(moved, "seen", "capacity=100 error=0.01"), other = std::move(seen), empty;
    const char *const no_store = "the store is empty: ", *const no_filter = "the filter is empty: ";

    CHECK(!memory && moved && !seen && other && !empty && memory.error()[0] == '\0');
    CHECK(throws([&] { seen.add("x"); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { empty.contains_many({"x"}); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { empty.info(); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { empty.spec(); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { other.merge(empty); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { filter::open_like(moved, "x", empty); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { empty.pair("x"); }, HIBLOOM_EINVAL, no_filter));
    CHECK(throws([&] { memory.drop_by_name("x"); }, HIBLOOM_EINVAL, no_store));
    CHECK(throws([&] { memory.list(); }, HIBLOOM_EINVAL, no_store));
    CHECK(throws([&] { memory.stats(); }, HIBLOOM_EINVAL, no_store));
    CHECK(throws([&] { filter::open(memory, "x"); }, HIBLOOM_EINVAL, no_store));
    CHECK(throws([&] { filter::import_from(moved, "x", memory, "y"); }, HIBLOOM_EINVAL, no_store));
    other = filter(); /* closes; the store can still be asked for it */
    CHECK(filter::open(moved, "seen"));
}

static void items_are_strings_and_ranges()
{
    store memory = store::connect("memory:");
    filter seen = filter::open(memory, "seen", "capacity=1000 error=1e-9");
    const std::string binary("a\0b", 3);
    const std::vector<std::string> strings = {"one", "two", "one"};
    const std::list<const char *> pointers = {"one", "three"};
    const std::array<hibloom_item, 2> plain = {{{"two", 3}, {nullptr, 0}}};

    CHECK(seen.add(binary) && !seen.add(binary) && !seen.contains("a") && seen.contains(binary));
    CHECK((seen.add_many(strings) == answers{true, true, false}));
    CHECK((seen.contains_many(pointers) == answers{true, false}));
    CHECK((seen.contains_many(plain) == answers{true, false}));
    seen.put_many({"four", std::string_view("five")});
    seen.put("six");
    CHECK((seen.contains_many({"four", "five", "six", "seven"}) == answers{true, true, true, false}));
    CHECK(seen.add_many(std::vector<std::string>()).empty());
#if __cplusplus >= 202002L
    CHECK(seen.contains_many(std::span(strings)).size() == 3 && seen.contains_many(std::span(plain))[0]);
#endif
}

/* Goes through what a range makes. */
template <class Range, class Element> struct making {
    using iterator_category = std::input_iterator_tag;
    using value_type = Element;
    using difference_type = int;
    using pointer = void;
    using reference = Element;
    Range *range;
    int i;
    Element operator*() const { return range->make(i); }
    making &operator++() { return ++i, *this; }
    bool operator!=(const making &other) const { return i != other.i; }
};

/* A range that makes its strings as it goes, and one that reads them into one place. */
struct numbered {
    using iterator = making<const numbered, std::string>;
    std::string make(int i) const { return "https://example.org/an/item/that/is/long/" + std::to_string(i); }
    iterator begin() const { return {this, 0}; }
    iterator end() const { return {this, 100}; }
};

struct words_of {
    std::istream &from;
    std::istream_iterator<std::string> begin() const { return std::istream_iterator<std::string>(from); }
    std::istream_iterator<std::string> end() const { return {}; }
};

/* One that shows each line in the same place, and that is not const. */
struct shown {
    using iterator = making<shown, std::string_view>;
    char line = 0;
    std::string_view make(int i) { return line = char('a' + i), std::string_view(&line, 1); }
    iterator begin() { return {this, 0}; }
    iterator end() { return {this, 10}; }
};

static void strings_that_do_not_stay_are_kept()
{
    store memory = store::connect("memory:");
    filter seen = filter::open(memory, "seen", "capacity=1000 error=1e-9");
    std::istringstream text("one two three");
    const items all = numbered(), copied = all;

    CHECK((seen.add_many(words_of{text}) == answers{true, true, true}));
    CHECK((seen.contains_many({"one", "two", "three"}) == answers{true, true, true}));
    seen.put_many(copied);
    CHECK(seen.contains_many(numbered()) == answers(100, true));
    for (const auto &item : numbered())
        CHECK(seen.contains(item));
    seen.put_many(shown());
    CHECK((seen.contains_many({"a", "e", "j"}) == answers{true, true, true}));
}

static void whole_filters()
{
    store memory = store::connect("memory:");
    filter a = filter::open(memory, "a", sized(1000, 0.001)), b = filter::open_like(memory, "b", a);

    CHECK(a.created() && a.name() == "a" && !filter::open(memory, "a").created());
    a.put_many({"one", "two"});
    b.merge(a);
    CHECK(b.contains("one") && b.compare(a).similarity > 0.99 && a.info().bits_set == b.info().bits_set);
    CHECK(a.spec() == b.spec() && a.secret_spec() == b.secret_spec() && spec_check(a.spec()) == a.spec());
    CHECK(plan(a.spec(), 1000).error_at_items <= 0.001 && plan(a.spec(), 1000).error_at_items > 0.0009);
    CHECK(positions(a.secret_spec(), "one").size() == plan(a.spec(), 1).hashes);
    filter rebuilt = filter::open(memory, "rebuilt", a.spec());
    rebuilt.put("three");
    rebuilt.replace("c");
    CHECK(filter::open(memory, "c").contains("three"));
    CHECK(thrown_by([&] { filter::import_file(memory, "d", "/nowhere/dump"); }) != HIBLOOM_OK);
    CHECK(thrown_by([&] { filter::import_from(memory, "d", memory, "nothing"); }) != HIBLOOM_OK);
    CHECK(memory.stats().in_flight == 0 && memory.list().size() == 3 && memory.list("a").size() == 1);
    b.clear();
    CHECK(!b.contains("one"));
    b.reopen();
    CHECK(!b.created());
    b.drop();
    memory.drop_by_name("a");
    CHECK(thrown_by([&] { filter::open(memory, "a"); }) == HIBLOOM_ENOTFOUND);

    filter counting = filter::open(memory, "counting", "capacity=100 error=0.001 counters=4");
    counting.add("x");
    CHECK(counting.remove("x") && !counting.contains("x") && !counting.remove_many({"x"})[0]);
}

/* One of them is gone: that fails all, or alone. */
static void many_filters()
{
    store memory = store::connect("memory:");
    std::vector<filter> made = filter::open_many(memory, {"a", "b", "c"}, "capacity=100 error=0.0001");
    statuses each;

    CHECK(made.size() == 3 && made[0] && made[1] && made[2]);
    CHECK((filter::add_pairs({made[0].pair("x"), made[1].pair("x")}) == answers{true, true}));
    const pairs asked = {made[0].pair("x"), made[1].pair("x"), made[2].pair("x")};
    CHECK((filter::contains_pairs(asked) == answers{true, true, false}) && filter::contains_pairs({}).empty());
    memory.drop_by_name("b");
    CHECK(thrown_by([&] { filter::contains_pairs(asked); }) == HIBLOOM_ENOTFOUND);
    const answers found = filter::contains_pairs(asked, &each);
    CHECK((each == statuses{HIBLOOM_OK, HIBLOOM_ENOTFOUND, HIBLOOM_OK}) && found[0] && found[1] && !found[2]);
    const char *const any = nullptr;
    made = filter::open_many(memory, {"a", "b", "c"}, any, &each);
    CHECK((each == statuses{HIBLOOM_OK, HIBLOOM_ENOTFOUND, HIBLOOM_OK}) && made[0] && !made[1] && made[2]);
    CHECK(thrown_by([&] { filter::open_many(memory, {"a", "b"}); }) == HIBLOOM_ENOTFOUND);
    filter::open_many(memory, {"a", "b"}, "", &each); /* refused as a whole */
    CHECK((each == statuses{HIBLOOM_EINVAL, HIBLOOM_EINVAL}));
}

int main()
{
    a_failure_is_thrown_in_its_own_words();
    a_connection_takes_options_and_says_why_it_failed();
    texts_with_a_zero_byte_are_refused();
    times_below_0_are_refused();
    what_is_empty_is_refused();
    items_are_strings_and_ranges();
    strings_that_do_not_stay_are_kept();
    whole_filters();
    many_filters();
    return failures != 0;
}
