/* hibloom for C++17: handles that close themselves, strings and ranges as items, and failures as exceptions.
 * A thin layer: hibloom.h says what each call does, and the names here are its names (get_ is left out).
 * There is nothing more to link. The namespace is hibloomxx, since hibloom is the handle of C.
 *
 *     store redis = store::connect("redis://127.0.0.1:6379", {{"retry", "10s"}});
 *     filter seen = filter::open(redis, "seen", "capacity=1M error=0.01");
 *     bool is_new = seen.add(url);
 *
 *  - A failure is thrown as hibloomxx::error. It has the status, and what() the words of the store.
 *  - store and filter can be moved, not copied. Declare a store before its filters: it must outlive them.
 *    An empty one (made by default, or moved from) is false, and calls on it are HIBLOOM_EINVAL.
 *  - Items and texts need to live during the call only.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_HIBLOOM_HPP
#define HIBLOOM_HIBLOOM_HPP

#if __cplusplus < 201703L
#error "hibloom.hpp needs C++17: -std=c++17. hibloom.h does with C++11"
#endif

#include <hibloom/hibloom.h>
#include <algorithm>
#include <chrono>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hibloomxx
{
/* Its words, what(): those of the store, if there are any, then those of hibloom_strerror. */
class error : public std::runtime_error
{
public:
    error(hibloom_status status, const std::string &words)
        : runtime_error((words.empty() ? words : words + ": ") + hibloom_strerror(status)), status_(status)
    {
    }
    hibloom_status status() const noexcept { return status_; }
    bool is_retryable() const noexcept { return hibloom_is_retryable(status_); }

    static void check(hibloom_status status, const char *words)
    {
        if (status != HIBLOOM_OK)
            throw error(status, words);
    }

private:
    hibloom_status status_;
};

using milliseconds = std::chrono::duration<std::uint64_t, std::milli>;
/* A time as C takes it. One below 0 has become a very long one. */
inline std::uint64_t checked(milliseconds time)
{
    if (time.count() > std::uint64_t(INT64_MAX))
        throw error(HIBLOOM_ERANGE, "a time is below 0");
    return time.count();
}
using answers = std::vector<bool>; /* in the order of the items */
using pairs = std::vector<hibloom_pair>;
using statuses = std::vector<hibloom_status>; /* `each` of C */

/* A name, a spec or a path: a std::string_view, or what converts to one; a null pointer is NULL in C. */
class text
{
public:
    text(std::nullptr_t) noexcept {}
    template <class From, class = std::enable_if_t<std::is_convertible_v<const From &, std::string_view>>>
    text(const From &from)
    {
        if constexpr (std::is_pointer_v<From>)
            if (from == nullptr)
                return;
        copy_ = std::string_view(from);
        if (copy_->find('\0') != copy_->npos)
            throw error(HIBLOOM_EINVAL, "a name, or another text, has a zero byte");
    }
    operator const char *() const noexcept { return copy_ ? copy_->c_str() : nullptr; }

private:
    std::optional<std::string> copy_;
};

/* Do its elements stay in their places? They do not where a range makes or reads each one as it goes. */
template <class Iterator, class = void> struct elements_stay : std::false_type {
};
template <class Iterator>
struct elements_stay<Iterator, std::void_t<typename std::iterator_traits<Iterator>::iterator_category>>
    : std::is_base_of<std::forward_iterator_tag, typename std::iterator_traits<Iterator>::iterator_category> {
};

/* The items of a call: any range of strings, or of hibloom_items. Strings that do not stay are kept here. The bytes that
 * a forward iterator refers to have to stay until the call. */
struct items : std::vector<hibloom_item> {
    items(std::initializer_list<std::string_view> range) : items(std::vector<std::string_view>(range)) {}
    template <class Range, class = std::enable_if_t<!std::is_base_of_v<items, std::decay_t<Range>>>,
              class = decltype(std::begin(std::declval<Range &>()))>
    items(Range &&range)
    {
        using place = std::decay_t<decltype(std::begin(range))>;
        for (auto &&element : range) {
            using kind = std::decay_t<decltype(element)>;
            if constexpr (std::is_same_v<kind, hibloom_item>) {
                push_back(element);
            } else {
                constexpr bool refers = std::is_reference_v<decltype(*std::begin(range))> || std::is_pointer_v<kind> ||
                                        std::is_same_v<kind, std::string_view>;
                std::string_view item(element);
                if constexpr (!(refers && elements_stay<place>::value))
                    item = *kept_.emplace_back(std::make_shared<const std::string>(item));
                push_back({item.data(), item.size()});
            }
        }
    }

private:
    std::vector<std::shared_ptr<const std::string>> kept_;
};

/* hibloom_setup; its options are pairs: {{"retry", "10s"}, {"client_name", "crawler"}}. */
struct setup {
    setup(std::initializer_list<std::pair<text, text>> named = {}) : options(named) {}

    std::vector<std::pair<text, text>> options;
    void (*log)(hibloom_log_level level, const char *line, void *data) = nullptr;
    void (*connected)(redisContext *connection, void *data) = nullptr;
    void *data = nullptr;
};

/* ---- Specs, without a server ---------------------------------------------------------------- */

inline std::string sized(std::uint64_t capacity, double error_rate)
{
    char made[64];
    return hibloom_sized(made, sizeof made, capacity, error_rate);
}
inline std::string spec_check(const text &spec)
{
    char made[HIBLOOM_TEXT_SIZE] = "";
    error::check(hibloom_spec_check(spec, made, sizeof made), made);
    return made;
}
inline std::string file_spec(const text &path)
{
    char made[HIBLOOM_TEXT_SIZE];
    error::check(hibloom_file_spec(path, made, sizeof made), path);
    return made;
}
inline hibloom_plan plan(const text &spec, std::uint64_t items)
{
    hibloom_plan plan;
    spec_check(spec); /* its words are better */
    error::check(hibloom_get_plan(spec, items, &plan, sizeof plan), "");
    return plan;
}
inline std::vector<hibloom_position> positions(const text &spec, std::string_view item)
{
    std::vector<hibloom_position> found(HIBLOOM_HASHES_MAX);
    std::size_t n;
    spec_check(spec);
    error::check(hibloom_positions(spec, item.data(), item.size(), found.data(), found.size(), &n),
                 "the spec lacks seed= or a size, or does not fit the item");
    found.resize(n);
    return found;
}

/* ---- Store ---------------------------------------------------------------------------------- */

class store
{
public:
    store() noexcept = default; /* empty */
    static store connect(const text &uri, const setup &with = {}) { return make(hibloom_connect, uri, with); }
    static store borrow(redisContext *c, const setup &with = {}) { return make(hibloom_borrow, c, with); }

    explicit operator bool() const noexcept { return store_ != nullptr; }
    hibloom_store *get() const
    {
        return store_ ? store_.get() : throw hibloomxx::error(HIBLOOM_EINVAL, "the store is empty");
    }
    const char *error() const noexcept { return hibloom_store_error(store_.get()); }
    std::optional<std::string> option(const text &name) const
    {
        const char *const value = hibloom_store_option(get(), name);
        return value ? std::optional<std::string>(value) : std::nullopt;
    }
    void deadline(milliseconds time) { hibloom_store_deadline(get(), checked(time)); }
    hibloom_stats stats() const
    {
        hibloom_stats stats;
        hibloom_get_stats(get(), &stats, sizeof stats);
        return stats;
    }

    void drop_by_name(const text &name) { call(hibloom_drop_by_name, name); }
    void repair(const text &name) { call(hibloom_repair, name); }
    std::vector<std::string> list(const text &pattern = nullptr)
    {
        struct {
            std::vector<std::string> names;
            std::exception_ptr failed; /* none may pass through C */
        } all;
        const auto take = [](const char *name, void *data) noexcept {
            auto *to = static_cast<decltype(all) *>(data);
            try {
                to->names.emplace_back(name);
            } catch (...) {
                to->failed = std::current_exception();
            }
            return !to->failed;
        };
        call(hibloom_list, pattern, take, &all);
        if (all.failed)
            std::rethrow_exception(all.failed);
        return all.names;
    }

private:
    struct free {
        void operator()(hibloom_store *s) const noexcept { hibloom_store_free(s); }
    };
    template <class Call, class... Arguments> void call(Call function, const Arguments &...arguments)
    {
        const hibloom_status status = function(get(), arguments...);
        hibloomxx::error::check(status, error());
    }
    template <class Call, class To> static store make(Call function, const To &to, const setup &with)
    {
        store made;
        hibloom_store *handle = nullptr;
        std::vector<const char *> options;
        for (const auto &[name, value] : with.options)
            options.insert(options.end(), {name, value});
        options.push_back(nullptr);
        const hibloom_setup setup = {sizeof setup, options.data(), with.log, with.connected, with.data};
        const hibloom_status status = function(&handle, to, &setup);
        made.store_.reset(handle);
        hibloomxx::error::check(status, made.error());
        return made;
    }

    std::unique_ptr<hibloom_store, free> store_;
};

/* ---- Filter --------------------------------------------------------------------------------- */

class filter
{
public:
    filter() noexcept = default;
    static filter open(store &s, const text &name, const text &spec = nullptr)
    {
        return make(s, hibloom_open, name, spec);
    }
    static filter open_like(store &s, const text &name, const filter &like)
    {
        return make(s, hibloom_open_like, name, like.get());
    }
    static filter attach(store &s, const text &name, const text &spec) { return make(s, hibloom_attach, name, spec); }
    static filter import_from(store &s, const text &name, store &from, const text &key) /* hibloom_import */
    {
        return make(s, hibloom_import, name, from.get(), key);
    }
    static filter import_file(store &s, const text &name, const text &path)
    {
        return make(s, hibloom_import_file, name, path);
    }
    /* One for each name; an empty one if its status is not OK. */
    static std::vector<filter> open_many(store &s, const std::vector<text> &names, const text &spec = nullptr,
                                         statuses *each = nullptr)
    {
        const std::vector<const char *> texts(names.begin(), names.end());
        std::vector<hibloom *> handles(names.size());
        std::vector<filter> made(names.size());
        call_each(handles.size(), each, s.get(), [&](hibloom_status *reports) {
            const auto status = hibloom_open_many(handles.data(), s.get(), texts.data(), texts.size(), spec, reports);
            for (std::size_t i = 0; i < handles.size(); i++)
                made[i].filter_.reset(handles[i]);
            return status;
        });
        return made;
    }

    explicit operator bool() const noexcept { return filter_ != nullptr; }
    hibloom *get() const { return filter_ ? filter_.get() : throw error(HIBLOOM_EINVAL, "the filter is empty"); }
    bool created() const { return hibloom_created(get()); }
    std::string name() const { return hibloom_name_of(get()); }
    std::string spec() const { return hibloom_spec_of(get()); }
    std::string secret_spec() const { return hibloom_secret_spec_of(get()); }
    void reopen() { call(hibloom_reopen); }

    bool add(std::string_view item) { return one(hibloom_add, item); }
    bool contains(std::string_view item) { return one(hibloom_contains, item); }
    bool remove(std::string_view item) { return one(hibloom_remove, item); }
    answers add_many(const items &all) { return many(hibloom_add_many, all); }
    answers contains_many(const items &all) { return many(hibloom_contains_many, all); }
    answers remove_many(const items &all) { return many(hibloom_remove_many, all); }
    /* hibloom_add without is_new, which is less work. */
    void put(std::string_view item) { call(hibloom_add, item.data(), item.size(), nullptr); }
    void put_many(const items &all) { call(hibloom_add_many, all.data(), all.size(), nullptr); }

    /* Many filters: {a.pair(item), b.pair(item), ...}. With `each` all failures are in it, and none is thrown.
     * An answer whose `each` is not OK is true, and means nothing. */
    hibloom_pair pair(std::string_view item) const { return {get(), {item.data(), item.size()}}; }
    static answers add_pairs(const pairs &all, statuses *each = nullptr) { return ask(hibloom_add_pairs, all, each); }
    static answers contains_pairs(const pairs &all, statuses *each = nullptr)
    {
        return ask(hibloom_contains_pairs, all, each);
    }
    void near_cache(milliseconds max_age = {}) { call(hibloom_near_cache, checked(max_age)); }

    hibloom_info info()
    {
        hibloom_info info;
        call(hibloom_get_info, &info, sizeof info);
        return info;
    }
    void clear() { call(hibloom_clear); }
    void expire(milliseconds time) { call(hibloom_expire, checked(time)); }
    void drop() { call(hibloom_drop); }
    void replace(const text &name) { call(hibloom_replace, name); }
    void merge(const filter &from) { call(hibloom_merge, from.get()); }
    hibloom_comparison compare(const filter &other) const
    {
        hibloom_comparison comparison;
        call(hibloom_compare, other.get(), &comparison, sizeof comparison);
        return comparison;
    }
    void save(const text &path) { call(hibloom_save, path); }
    void save_fd(int fd) { call(hibloom_save_fd, fd); }
    void restore(const text &path) { call(hibloom_restore, path); }

private:
    struct close {
        void operator()(hibloom *f) const noexcept { hibloom_close(f); }
    };
    template <class Call, class... Arguments> void call(Call function, const Arguments &...arguments) const
    {
        const hibloom_status status = function(get(), arguments...);
        error::check(status, hibloom_store_error(hibloom_store_of(get())));
    }
    template <class Call, class... Arguments> static filter make(store &s, Call function, const Arguments &...arguments)
    {
        filter made;
        hibloom *handle = nullptr;
        const hibloom_status status = function(&handle, s.get(), arguments...);
        error::check(status, s.error());
        made.filter_.reset(handle);
        return made;
    }
    /* A call with a status for each of n. */
    template <class Call> static void call_each(std::size_t n, statuses *each, hibloom_store *words, Call function)
    {
        if (each != nullptr)
            each->assign(n, HIBLOOM_STATUS_LAST_);
        const hibloom_status status = function(each ? each->data() : nullptr);
        if (each == nullptr)
            error::check(status, hibloom_store_error(words));
        else
            std::replace(each->begin(), each->end(), HIBLOOM_STATUS_LAST_, status); /* the call was refused */
    }

    template <class Call> bool one(Call function, std::string_view item)
    {
        bool answer = false;
        call(function, item.data(), item.size(), &answer);
        return answer;
    }
    template <class Call> answers many(Call function, const items &all)
    {
        const std::unique_ptr<bool[]> found(new bool[all.size()]());
        call(function, all.data(), all.size(), found.get());
        return answers(found.get(), found.get() + all.size());
    }
    template <class Call> static answers ask(Call function, const pairs &all, statuses *each)
    {
        const std::unique_ptr<bool[]> found(new bool[all.size()]);
        std::fill_n(found.get(), all.size(), true);
        call_each(all.size(), each, all.empty() ? nullptr : hibloom_store_of(all[0].filter),
                  [&](hibloom_status *to) { return function(all.data(), all.size(), found.get(), to); });
        return answers(found.get(), found.get() + all.size());
    }

    std::unique_ptr<hibloom, close> filter_;
};
} // namespace hibloomxx
#endif
