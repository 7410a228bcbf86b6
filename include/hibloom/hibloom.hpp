/* hibloom for C++17: handles that close themselves, strings and ranges as items, and
 * errors as exceptions or as std::error_code.
 *
 * A thin layer over hibloom.h, which says what each call does, by what round trips, and
 * with which statuses it fails; what is here has the names that are there. One header,
 * nothing to link besides the library. The namespace is hibloomxx, since hibloom is
 * the C handle's name.
 *
 *  - Each function that can fail takes an on_error as its last argument. Left out, a
 *    failure is an exception, hibloomxx::error. A std::error_code in its place is set, to
 *    success or to the status, and then nothing is thrown but std::bad_alloc:
 *
 *        auto seen = filter::open(store, "seen", spec::sized(1000000, 0.01));   // or throws
 *        std::error_code ec;
 *        bool is_new = seen.add(url, ec);            // false if ec
 *        if (ec == HIBLOOM_ETIMEDOUT) ...
 *
 *  - store and filter can be moved, not copied. A store must outlive its filters: so
 *    declare it before them. Of an empty one (made by default, moved from, or by a call
 *    that failed) operator bool is false; calls on it are HIBLOOM_EINVAL.
 *  - An item is a std::string_view: any bytes. It needs to live during the call only.
 *
 * SPDX-License-Identifier: MIT */
#ifndef HIBLOOM_HIBLOOM_HPP
#define HIBLOOM_HIBLOOM_HPP

#if __cplusplus < 201703L
#error "hibloom.hpp needs C++17: -std=c++17. hibloom.h does with C++11"
#endif

#include <hibloom/hibloom.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace hibloomxx
{

/* The category of all statuses: its messages are those of hibloom_strerror. */
inline const std::error_category &category() noexcept
{
    static const struct : std::error_category {
        const char *name() const noexcept override
        {
            return "hibloom";
        }
        std::string message(int status) const override
        {
            return hibloom_strerror(static_cast<hibloom_status>(status));
        }
    } instance;

    return instance;
}

} // namespace hibloomxx

/* So a status compares with a std::error_code. */
inline std::error_code make_error_code(hibloom_status status) noexcept
{
    return {static_cast<int>(status), hibloomxx::category()};
}
template <> struct std::is_error_code_enum<hibloom_status> : std::true_type {
};

namespace hibloomxx
{

/* hibloom_is_retryable. */
inline bool is_retryable(const std::error_code &ec) noexcept
{
    return ec.category() == category() && hibloom_is_retryable(static_cast<hibloom_status>(ec.value()));
}

/* What a failure is without a std::error_code: code() is the status. what() begins with the
 * words of the store, which name server and key, where the failure has any; of a call that was
 * refused here, and never made, with the reason. */
class error : public std::system_error
{
public:
    error(hibloom_status status, const std::string &words)
        : std::system_error(words.empty() ? std::system_error(make_error_code(status))
                                          : std::system_error(make_error_code(status), words))
    {
    }
    hibloom_status status() const noexcept
    {
        return static_cast<hibloom_status>(code().value());
    }
};

/* Why a text is refused that a function of C would read up to its first zero byte; NULL: it is not. */
inline const char *refused_text(const std::string &text) noexcept
{
    return text.find('\0') != text.npos ? "a name, or another text, has a zero byte" : nullptr;
}

/* Where a failure goes; not to be named by callers. */
class on_error
{
public:
    on_error() noexcept = default; /* it is thrown */
    on_error(std::error_code &ec) noexcept : code_(&ec)
    {
    } /* it is put there */

    /* Whether the status is OK. The words are those of an exception. */
    bool good(hibloom_status status, const char *words) const
    {
        if (code_ != nullptr)
            *code_ = status == HIBLOOM_OK ? std::error_code() : make_error_code(status);
        else if (status != HIBLOOM_OK)
            throw error(status, words);
        return status == HIBLOOM_OK;
    }
    /* refused: why the call was not made; then the store's words are those of an earlier one. */
    bool good(hibloom_status status, const hibloom_store *store = nullptr, const char *refused = nullptr) const
    {
        return good(status, refused != nullptr ? refused : hibloom_store_error(store));
    }

private:
    std::error_code *code_ = nullptr;
};

/* ---- Items and answers -------------------------------------------------------- */

/* The items of a call: a view of hibloom_items in a row (an array, a vector, a std::span),
 * or made of any range of what a std::string_view can be made of. */
class items
{
public:
    items(const hibloom_item *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }
    items(std::initializer_list<std::string_view> range)
    {
        gather(range);
    }

    template <class Range, class = decltype(std::begin(std::declval<const Range &>()))> items(const Range &range)
    {
        using element = std::decay_t<decltype(*std::begin(range))>;

        if constexpr (std::is_same_v<element, hibloom_item>) {
            data_ = std::data(range);
            size_ = std::size(range);
        } else {
            gather(range);
        }
    }
    items(const items &) = delete;
    items &operator=(const items &) = delete;

    const hibloom_item *data() const noexcept
    {
        return data_;
    }
    std::size_t size() const noexcept
    {
        return size_;
    }

private:
    template <class Range> void gather(const Range &range)
    {
        for (const auto &element : range) {
            const std::string_view item(element);
            made_.push_back({item.data(), item.size()});
        }
        data_ = made_.data();
        size_ = made_.size();
    }

    std::vector<hibloom_item> made_;
    const hibloom_item *data_ = nullptr;
    std::size_t size_ = 0;
};

/* What a call of many items answers, in their order; empty after a failure. */
class answers
{
public:
    answers() noexcept = default;
    explicit answers(std::size_t size) : data_(new bool[size]()), size_(size)
    {
    }

    bool operator[](std::size_t i) const noexcept
    {
        return data_[i];
    }
    std::size_t size() const noexcept
    {
        return size_;
    }
    bool *data() noexcept
    {
        return data_.get();
    }
    const bool *begin() const noexcept
    {
        return data_.get();
    }
    const bool *end() const noexcept
    {
        return data_.get() + size_;
    }

private:
    std::unique_ptr<bool[]> data_;
    std::size_t size_ = 0;
};

/* ---- Spec --------------------------------------------------------------------- */

/* hibloom_spec, with its functions. An empty one (all 0) is refused by all calls. */
struct spec : hibloom_spec {
    spec() noexcept : hibloom_spec()
    {
    }
    explicit spec(const hibloom_spec &other) noexcept : hibloom_spec(other)
    {
    }

    /* hibloom_spec_for. */
    static spec sized(std::uint64_t capacity, double error_rate, on_error failed = {})
    {
        spec made;
        failed.good(hibloom_spec_for(&made, capacity, error_rate), "a capacity and an error rate");
        return made;
    }

    /* hibloom_spec_for_hashes. */
    static spec sized(std::uint64_t capacity, double error_rate, std::uint32_t hashes, on_error failed = {})
    {
        spec made;
        failed.good(hibloom_spec_for_hashes(&made, capacity, error_rate, hashes),
                    "a capacity, an error rate and a number of hashes");
        return made;
    }

    /* hibloom_spec_grow. */
    spec &grow(std::uint32_t times, on_error failed = {})
    {
        failed.good(hibloom_spec_grow(this, times));
        return *this;
    }

    /* hibloom_spec_window. */
    spec &window(std::uint32_t seconds, std::uint32_t count = 0, on_error failed = {})
    {
        failed.good(hibloom_spec_window(this, seconds, count));
        return *this;
    }

    /* hibloom_spec_parse. An exception names the wrong word, as hibloom_spec_error does. */
    static spec parse(const std::string &text, on_error failed = {})
    {
        spec made;
        char words[256] = "";
        const char *const refused = refused_text(text);
        const hibloom_status status = refused ? HIBLOOM_EINVAL : hibloom_spec_parse(&made, text.c_str());

        if (status != HIBLOOM_OK)
            hibloom_spec_error(text.c_str(), words, sizeof words);
        failed.good(status, refused ? refused : words);
        return made;
    }

    /* hibloom_spec_load. */
    static spec load(const std::string &path, on_error failed = {})
    {
        spec made;
        const char *const refused = refused_text(path);

        failed.good(refused ? HIBLOOM_EINVAL : hibloom_spec_load(&made, path.c_str()),
                    refused ? refused : path.c_str());
        return made;
    }

    /* hibloom_spec_format. */
    std::string text(on_error failed = {}) const
    {
        char buf[HIBLOOM_SPEC_TEXT_SIZE];

        return failed.good(hibloom_spec_format(this, buf, sizeof buf)) ? buf : std::string();
    }

    double error_at(std::uint64_t items) const noexcept
    {
        return hibloom_spec_error_at(this, items);
    }

    std::vector<hibloom_position> positions(std::string_view item, on_error failed = {}) const
    {
        std::vector<hibloom_position> found(hashes <= HIBLOOM_HASHES_MAX ? hashes : 0); /* of more it is refused */

        if (!failed.good(hibloom_positions(this, item.data(), item.size(), found.data())))
            found.clear();
        return found;
    }

    /* hibloom_spec_rates. */
    hibloom_rates rates(bool bitfield = false, on_error failed = {}) const
    {
        hibloom_rates found = {};

        failed.good(hibloom_spec_rates(this, bitfield, &found));
        return found;
    }
};

/* ---- Store -------------------------------------------------------------------- */

class store
{
public:
    store() noexcept = default;

    static store memory(on_error failed = {})
    {
        return connect("memory:", failed);
    }

    /* After a failure words() says why, and all else is refused. */
    static store connect(const std::string &uri, on_error failed = {})
    {
        return connect(uri, nullptr, failed);
    }
    static store connect(const std::string &uri, const hibloom_setup *setup, on_error failed = {})
    {
        store made;
        const char *const refused = refused_text(uri);
        made.take(refused ? HIBLOOM_EINVAL : hibloom_connect(made.out(), uri.c_str(), setup), failed, refused);
        return made;
    }

    /* The connection stays the caller's. */
    static store borrow(redisContext *context, on_error failed = {}, const hibloom_setup *setup = nullptr)
    {
        store made;
        made.take(hibloom_borrow(made.out(), context, setup), failed);
        return made;
    }

    explicit operator bool() const noexcept
    {
        return usable_ && store_ != nullptr;
    }
    hibloom_store *get() const noexcept
    {
        return usable_ ? store_.get() : nullptr;
    }

    /* hibloom_store_option; nullptr: as there. */
    const char *option(const char *name) const noexcept
    {
        return hibloom_store_option(get(), name);
    }
    /* hibloom_store_error. */
    const char *words() const noexcept
    {
        return hibloom_store_error(store_.get());
    }

    hibloom_stats stats() const noexcept
    {
        hibloom_stats stats = {};

        if (*this)
            hibloom_get_stats(get(), &stats);
        return stats;
    }

    /* hibloom_store_deadline. */
    void deadline(std::chrono::duration<std::uint32_t, std::milli> time) noexcept
    {
        if (*this)
            hibloom_store_deadline(get(), time.count());
    }

    /* hibloom_spec_spread. */
    spec spread(spec wanted, on_error failed = {}) const
    {
        failed.good(*this ? hibloom_spec_spread(&wanted, get()) : HIBLOOM_EINVAL, nullptr, refused());
        return wanted;
    }

    void repair(const std::string &name, on_error failed = {})
    {
        by_name(hibloom_repair, name, failed);
    }

    /* hibloom_delete. */
    void remove(const std::string &name, on_error failed = {})
    {
        by_name(hibloom_delete, name, failed);
    }

    /* hibloom_list: calls each(std::string_view name), which returns whether to go on. What it
     * throws ends the list, and comes out here. */
    template <class Each> void list(const std::string &pattern, Each each, on_error failed = {})
    {
        struct calling {
            Each &each;
            std::exception_ptr thrown;

            static bool call(const char *name, void *data)
            {
                calling *const self = static_cast<calling *>(data);
                try {
                    return self->each(std::string_view(name));
                } catch (...) { /* the library's own frames are C */
                    self->thrown = std::current_exception();
                    return false;
                }
            }
        } calls{each, nullptr};

        const char *const why = refused(pattern);
        const hibloom_status status = why ? HIBLOOM_EINVAL
                                          : hibloom_list(get(), pattern.c_str(), calling::call, &calls);
        if (calls.thrown)
            std::rethrow_exception(calls.thrown);
        failed.good(status, get(), why);
    }

private:
    friend class filter;

    struct free {
        void operator()(hibloom_store *s) const noexcept
        {
            hibloom_store_free(s);
        }
    };

    /* A pointer for a function of C to fill in; take() then owns what came. */
    hibloom_store **out() noexcept
    {
        return &made_;
    }

    void take(hibloom_status status, on_error failed, const char *refused = nullptr)
    {
        store_.reset(std::exchange(made_, nullptr));
        usable_ = status == HIBLOOM_OK;
        failed.good(status, store_.get(), refused);
    }

    /* Why no call is made on it; NULL: it can be. */
    const char *refused() const noexcept
    {
        return *this ? nullptr : "the store is empty: never made, moved from, or its connection failed";
    }
    const char *refused(const std::string &name) const noexcept
    {
        return *this ? refused_text(name) : refused();
    }

    void by_name(hibloom_status (*call)(hibloom_store *, const char *), const std::string &name, on_error failed)
    {
        const char *const why = refused(name);

        failed.good(why ? HIBLOOM_EINVAL : call(get(), name.c_str()), get(), why);
    }

    std::unique_ptr<hibloom_store, free> store_;
    hibloom_store *made_ = nullptr;
    bool usable_ = false;
};

/* ---- Filter ------------------------------------------------------------------- */

class filter
{
public:
    filter() noexcept = default;

    /* Opens the filter, creating it if there is none. */
    static filter open(store &s, const std::string &name, const hibloom_spec &spec, on_error failed = {})
    {
        return make(hibloom_open, s, name, &spec, failed);
    }

    /* It must exist. */
    static filter open(store &s, const std::string &name, on_error failed = {})
    {
        return make(hibloom_open, s, name, nullptr, failed);
    }

    static filter attach(store &s, const std::string &name, const hibloom_spec &spec, on_error failed = {})
    {
        return make(hibloom_attach, s, name, &spec, failed);
    }

    /* hibloom_import: takes RedisBloom's filter `key` on `from` over. */
    static filter import_from(store &s, const std::string &name, store &from, const std::string &key,
                              on_error failed = {})
    {
        const auto open_it = [&](hibloom **out) {
            return hibloom_import(out, s.get(), name.c_str(), from.get(), key.c_str());
        };

        return opened(s, s.refused(name) ? s.refused(name) : from.refused(key), open_it, failed);
    }

    /* hibloom_import_file. */
    static filter import_file(store &s, const std::string &name, const std::string &path, on_error failed = {})
    {
        const auto open_it = [&](hibloom **out) {
            return hibloom_import_file(out, s.get(), name.c_str(), path.c_str());
        };

        return opened(s, s.refused(name) ? s.refused(name) : refused_text(path), open_it, failed);
    }

    explicit operator bool() const noexcept
    {
        return filter_ != nullptr;
    }
    hibloom *get() const noexcept
    {
        return filter_.get();
    }

    /* Adds an item: whether it is new. */
    bool add(std::string_view item, on_error failed = {})
    {
        return one(hibloom_add, item, failed);
    }
    answers add_many(const items &all, on_error failed = {})
    {
        return many(hibloom_add_many, all, failed);
    }

    /* Adds, and does not ask what is new: very many items may go by whole bitmaps then. */
    void put(std::string_view item, on_error failed = {})
    {
        failed.good(*this ? hibloom_add(get(), item.data(), item.size(), nullptr) : HIBLOOM_EINVAL, store_, refused());
    }
    void put_many(const items &all, on_error failed = {})
    {
        failed.good(*this ? hibloom_add_many(get(), all.data(), all.size(), nullptr) : HIBLOOM_EINVAL, store_,
                    refused());
    }

    /* Whether an item may be in: false is certain, but where ec is set. */
    bool contains(std::string_view item, on_error failed = {})
    {
        return one(hibloom_contains, item, failed);
    }
    answers contains_many(const items &all, on_error failed = {})
    {
        return many(hibloom_contains_many, all, failed);
    }

    /* Removes an item from a counting filter: whether it may have been in. */
    bool remove(std::string_view item, on_error failed = {})
    {
        return one(hibloom_remove, item, failed);
    }
    answers remove_many(const items &all, on_error failed = {})
    {
        return many(hibloom_remove_many, all, failed);
    }

    void near_cache(std::chrono::duration<std::uint32_t, std::milli> max_age = {}, on_error failed = {})
    {
        failed.good(*this ? hibloom_near_cache(get(), max_age.count()) : HIBLOOM_EINVAL, store_, refused());
    }

    hibloom_info info(on_error failed = {})
    {
        hibloom_info info = {};

        failed.good(*this ? hibloom_get_info(get(), &info) : HIBLOOM_EINVAL, store_, refused());
        return info;
    }

    void clear(on_error failed = {})
    {
        failed.good(*this ? hibloom_clear(get()) : HIBLOOM_EINVAL, store_, refused());
    }
    void drop(on_error failed = {})
    {
        failed.good(*this ? hibloom_drop(get()) : HIBLOOM_EINVAL, store_, refused());
    }

    void expire(std::chrono::duration<std::uint64_t> time, on_error failed = {})
    {
        failed.good(*this ? hibloom_expire(get(), time.count()) : HIBLOOM_EINVAL, store_, refused());
    }

    /* Puts it in the place of the filter `name`. */
    void replace(const std::string &name, on_error failed = {})
    {
        with_text(hibloom_replace, name, failed);
    }

    /* The union: adds all that `from` holds. */
    void merge(const filter &from, on_error failed = {})
    {
        failed.good(*this && from ? hibloom_merge(get(), from.get()) : HIBLOOM_EINVAL, store_, refused(from));
    }

    hibloom_comparison compare(const filter &other, on_error failed = {}) const
    {
        hibloom_comparison comparison = {};

        failed.good(*this && other ? hibloom_compare(get(), other.get(), &comparison) : HIBLOOM_EINVAL, store_,
                    refused(other));
        return comparison;
    }

    void save(const std::string &path, on_error failed = {})
    {
        with_text(hibloom_save, path, failed);
    }
    void save(int fd, on_error failed = {})
    {
        failed.good(*this ? hibloom_save_fd(get(), fd) : HIBLOOM_EINVAL, store_, refused());
    }
    void load(const std::string &path, on_error failed = {})
    {
        with_text(hibloom_load, path, failed);
    }

    /* hibloom_spec_of; of an empty filter an empty one. */
    hibloomxx::spec spec() const noexcept
    {
        return *this ? hibloomxx::spec(*hibloom_spec_of(get())) : hibloomxx::spec();
    }

private:
    struct close {
        void operator()(hibloom *f) const noexcept
        {
            hibloom_close(f);
        }
    };

    /* Why no call is made on it, or with another one; NULL: it can be. */
    const char *refused() const noexcept
    {
        return *this ? nullptr : "the filter is empty: never opened, or moved from";
    }
    const char *refused(const filter &other) const noexcept
    {
        return *this ? other.refused() : refused();
    }

    /* A filter that `call`, a function of (hibloom **), opens on the store. */
    template <class Call> static filter opened(const store &s, const char *refused, Call call, on_error failed)
    {
        filter made;
        hibloom *handle = nullptr;
        const hibloom_status status = refused ? HIBLOOM_EINVAL : call(&handle);

        made.filter_.reset(handle);
        made.store_ = s.get();
        failed.good(status, s.get(), refused);
        return made;
    }

    static filter make(hibloom_status (*call)(hibloom **, hibloom_store *, const char *, const hibloom_spec *),
                       const store &s, const std::string &name, const hibloom_spec *spec, on_error failed)
    {
        const auto open_it = [&](hibloom **out) { return call(out, s.get(), name.c_str(), spec); };

        return opened(s, s.refused(name), open_it, failed);
    }

    bool one(hibloom_status (*call)(hibloom *, const void *, std::size_t, bool *), std::string_view item,
             on_error failed)
    {
        bool answer = false;

        failed.good(*this ? call(get(), item.data(), item.size(), &answer) : HIBLOOM_EINVAL, store_, refused());
        return answer;
    }

    answers many(hibloom_status (*call)(hibloom *, const hibloom_item *, std::size_t, bool *), const items &all,
                 on_error failed)
    {
        answers found(all.size());
        const bool good = failed.good(*this ? call(get(), all.data(), all.size(), found.data()) : HIBLOOM_EINVAL,
                                      store_, refused());

        return good ? std::move(found) : answers();
    }

    void with_text(hibloom_status (*call)(hibloom *, const char *), const std::string &text, on_error failed)
    {
        const char *const why = *this ? refused_text(text) : refused();

        failed.good(why ? HIBLOOM_EINVAL : call(get(), text.c_str()), store_, why);
    }

    std::unique_ptr<hibloom, close> filter_;
    const hibloom_store *store_ = nullptr; /* for its words */
};

} // namespace hibloomxx

#endif
