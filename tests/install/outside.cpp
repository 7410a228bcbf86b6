/* The C++ header from outside the tree, on a memory store: what it adds to hibloom.h.
 * Built and run by tests/tools/install-test.sh, as C++17 and as C++20. */
#include <hibloom/hibloom.hpp>

#include <array>
#include <iostream>
#include <list>
#include <stdexcept>
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

/* The status that it throws; OK if it does not. */
template <class Function> static hibloom_status thrown_by(Function function)
{
    try {
        function();
    } catch (const error &e) {
        return e.status();
    }
    return HIBLOOM_OK;
}

static void errors_are_thrown_or_put_into_a_code()
{
    store memory = store::memory();
    std::error_code ec;

    CHECK(thrown_by([&] { filter::open(memory, "nobody"); }) == HIBLOOM_ENOTFOUND);
    filter none = filter::open(memory, "nobody", ec);
    CHECK(!none && ec == HIBLOOM_ENOTFOUND && ec.category() == category());
    CHECK(ec.message() == hibloom_strerror(HIBLOOM_ENOTFOUND) && !is_retryable(ec));
    filter some = filter::open(memory, "some", spec::sized(100, 0.01), ec);
    CHECK(some && !ec); /* success resets the code */
    CHECK(is_retryable(HIBLOOM_EBUSY));
    CHECK(thrown_by([] { spec::parse("bits=abc"); }) == HIBLOOM_EINVAL);
    try {
        spec::parse("bits=abc");
    } catch (const error &e) {
        CHECK(std::string(e.what()).find("bits=abc: not a whole number") != std::string::npos);
    }
    CHECK(thrown_by([] { spec().positions("x"); }) == HIBLOOM_ERANGE);
    CHECK(thrown_by([] { spec().rates(); }) == HIBLOOM_ERANGE);
    CHECK(thrown_by([] { spec::sized(0, 0.01); }) == HIBLOOM_ERANGE);
}

static void a_failed_connection_has_words()
{
    std::error_code ec;
    store nowhere = store::connect("unix:///nowhere/redis.sock", ec);

    CHECK(!nowhere && ec == HIBLOOM_EIO &&
          std::string(nowhere.words()).find("/nowhere/redis.sock") != std::string::npos);
    CHECK(thrown_by([&] { filter::open(nowhere, "x"); }) == HIBLOOM_EINVAL);
    try {
        store::connect("unix:///nowhere/redis.sock");
        CHECK(false);
    } catch (const std::system_error &e) {
        CHECK(e.code() == HIBLOOM_EIO && std::string(e.what()).find("/nowhere/redis.sock") != std::string::npos);
    }
}

/* What it says of a failure. */
template <class Function> static std::string said_by(Function function)
{
    try {
        function();
    } catch (const error &e) {
        return e.what();
    }
    return "";
}

static bool begins(const std::string &text, const char *words)
{
    return text.rfind(words, 0) == 0;
}

/* The store's words, where it failed; where it was never asked, none of an earlier failure. */
static void exceptions_have_the_words_of_their_own_failure()
{
    store memory = store::memory(), none;
    filter empty, some = filter::open(memory, "some", spec::sized(100, 0.01));
    const std::string zero("a\0b", 3), text_is_refused = "a name, or another text, has a zero byte: ";

    const std::string missing = said_by([&] { filter::open(memory, "nobody"); });
    CHECK(missing == memory.words() + std::string(": ") + hibloom_strerror(HIBLOOM_ENOTFOUND) &&
          missing.find("'nobody'") != std::string::npos);
    CHECK(begins(said_by([&] { filter::open(memory, "some", spec::sized(7, 0.01)); }), memory.words()));
    CHECK(begins(said_by([&] { some.load("/nowhere/file"); }), "/nowhere/file: "));
    CHECK(begins(said_by([&] { some.remove("x"); }), memory.words()));
    CHECK(begins(said_by([&] { filter::open(memory, zero); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { memory.repair(zero); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { memory.list(zero, [](std::string_view) { return true; }); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { some.save(zero); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { filter::import_file(memory, "x", zero); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { store::connect(zero); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { spec::parse(zero); }), text_is_refused.c_str()));
    CHECK(begins(said_by([&] { none.remove("x"); }), "the store is empty: "));
    CHECK(begins(said_by([&] { none.spread(spec::sized(1, 0.1)); }), "the store is empty: "));
    CHECK(begins(said_by([&] { filter::open(none, "x"); }), "the store is empty: "));
    CHECK(begins(said_by([&] { empty.add("x"); }), "the filter is empty: "));
    CHECK(begins(said_by([&] { empty.contains_many({"x"}); }), "the filter is empty: "));
    CHECK(begins(said_by([&] { empty.save("x"); }), "the filter is empty: "));
    CHECK(begins(said_by([&] { some.merge(empty); }), "the filter is empty: "));
    CHECK(begins(said_by([&] { spec::load("/nowhere/file"); }), "/nowhere/file: "));
    CHECK(begins(said_by([&] { spec::sized(100, 2); }), "a capacity and an error rate: "));
    CHECK(said_by([&] { memory.spread(spec()); }) == hibloom_strerror(HIBLOOM_ERANGE));
    CHECK(said_by([] { spec().rates(); }) == hibloom_strerror(HIBLOOM_ERANGE)); /* no words: the status alone */
}

static void what_is_empty_is_refused()
{
    store memory = store::memory(), moved = std::move(memory);
    filter seen = filter::open(moved, "seen", spec::sized(100, 0.01)), other = std::move(seen), empty;

    CHECK(!memory && moved && !seen && other && !empty);
    CHECK(thrown_by([&] { seen.add("x"); }) == HIBLOOM_EINVAL);
    CHECK(thrown_by([&] { empty.contains_many({"x"}); }) == HIBLOOM_EINVAL);
    CHECK(thrown_by([&] { empty.info(); }) == HIBLOOM_EINVAL);
    CHECK(thrown_by([&] { other.merge(empty); }) == HIBLOOM_EINVAL);
    CHECK(thrown_by([&] { memory.remove("x"); }) == HIBLOOM_EINVAL);
    CHECK(thrown_by([&] { memory.list("*", [](std::string_view) { return true; }); }) == HIBLOOM_EINVAL);
    CHECK(empty.spec().bits == 0 && memory.stats().calls == 0 && memory.words()[0] == '\0');
    CHECK(thrown_by([&] { filter::open(moved, std::string("a\0b", 3)); }) == HIBLOOM_EINVAL);
    other = filter(); /* closes; the store can still be asked for it */
    CHECK(filter::open(moved, "seen"));
}

static void items_are_strings_and_ranges()
{
    store memory = store::memory();
    filter seen = filter::open(memory, "seen", spec::parse("capacity=1000 error=1e-9"));
    const std::string binary("a\0b", 3);
    const std::vector<std::string> strings = {"one", "two", "one"};
    const std::list<const char *> pointers = {"one", "three"};
    const std::array<hibloom_item, 2> plain = {{{"two", 3}, {nullptr, 0}}};

    CHECK(seen.add(binary) && !seen.add(binary) && !seen.contains("a") && seen.contains(binary));
    const answers is_new = seen.add_many(strings);
    CHECK(is_new.size() == 3 && is_new[0] && is_new[1] && !is_new[2]);
    const answers found = seen.contains_many(pointers);
    CHECK(found.size() == 2 && found[0] && !found[1]);
    CHECK(seen.contains_many(plain)[0] && !seen.contains_many(plain)[1]);
    const items view(plain);
    CHECK(view.data() == plain.data() && view.size() == 2); /* not copied */
    seen.put_many({"four", std::string_view("five")});
    seen.put("six");
    std::size_t in = 0;
    for (bool is_in : seen.contains_many({"four", "five", "six", "seven"}))
        in += is_in;
    CHECK(in == 3 && seen.add_many(std::vector<std::string>()).size() == 0);
#if __cplusplus >= 202002L
    CHECK(seen.contains_many(std::span(strings)).size() == 3 && items(std::span(plain)).data() == plain.data());
#endif
}

static void whole_filters()
{
    store memory = store::memory();
    filter a = filter::open(memory, "a", spec::sized(1000, 0.001)), b = filter::open(memory, "b", a.spec());

    a.put_many({"one", "two"});
    b.merge(a);
    CHECK(b.contains("one") && b.compare(a).similarity > 0.99 && a.info().bits_set == b.info().bits_set);
    CHECK(a.spec().text() == b.spec().text() && spec::parse(a.spec().text()).bits == a.spec().bits);
    filter rebuilt = filter::open(memory, "rebuilt", a.spec());
    rebuilt.put("three");
    rebuilt.replace("c");
    CHECK(filter::open(memory, "c").contains("three"));
    CHECK(a.spec().positions("one").size() == a.spec().hashes && a.spec().rates().look_ups > 0);
    CHECK(a.spec().error_at(1000) <= 0.001 && a.spec().error_at(1000) > 0.0009);
    CHECK(thrown_by([&] { filter::import_file(memory, "d", "/nowhere/dump"); }) != HIBLOOM_OK);
    CHECK(thrown_by([&] { filter::import_from(memory, "d", memory, "nothing"); }) != HIBLOOM_OK);
    b.clear();
    CHECK(!b.contains("one"));
    b.drop();
    memory.remove("a");
    CHECK(thrown_by([&] { filter::open(memory, "a"); }) == HIBLOOM_ENOTFOUND);

    filter counting = filter::open(memory, "counting", spec::parse("capacity=100 error=0.001 counters=4"));
    counting.add("x");
    CHECK(counting.remove("x") && !counting.contains("x") && !counting.remove_many({"x"})[0]);
}

static void what_a_callback_throws_comes_out()
{
    store memory = store::memory();
    filter a = filter::open(memory, "a", spec::sized(10, 0.1)), b = filter::open(memory, "b", spec::sized(10, 0.1));
    std::vector<std::string> names;
    bool came = false;

    memory.list("*", [&](std::string_view name) { return names.emplace_back(name), true; });
    CHECK(names.size() == 2);
    try {
        memory.list("*", [](std::string_view) -> bool { throw std::runtime_error("enough"); });
    } catch (const std::runtime_error &e) {
        came = std::string(e.what()) == "enough";
    }
    CHECK(came);
}

int main()
{
    errors_are_thrown_or_put_into_a_code();
    a_failed_connection_has_words();
    exceptions_have_the_words_of_their_own_failure();
    what_is_empty_is_refused();
    items_are_strings_and_ranges();
    whole_filters();
    what_a_callback_throws_comes_out();
    return failures != 0;
}
