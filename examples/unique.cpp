/* The lines that nobody has passed before, as `hibloom uniq` prints them, in C++: batches
 * of lines, errors as exceptions, and what may pass is tried again.
 *
 *   c++ -std=c++17 -o unique unique.cpp $(pkg-config --cflags --libs hibloom)
 *   ./unique redis://127.0.0.1:6379 seen < urls > new_urls */
#include <hibloom/hibloom.hpp>

#include <iostream>
#include <string>
#include <vector>

using namespace hibloomxx;

/* Reads up to 1,000 lines. */
static std::vector<std::string> batch(std::istream &in)
{
    std::vector<std::string> lines;

    for (std::string line; lines.size() < 1000 && std::getline(in, line);)
        lines.push_back(std::move(line));
    return lines;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::cerr << "usage: unique URI NAME\n";
        return 2;
    }
    try {
        const char *const options[] = {"retry", "10s", nullptr}; /* waits for a server that restarts, or is busy */
        hibloom_setup setup{};
        setup.size = sizeof setup;
        setup.options = options;
        store redis = store::connect(argv[1], &setup);
        filter seen = filter::open(redis, argv[2], spec::sized(10000000, 0.001));

        for (auto lines = batch(std::cin); !lines.empty(); lines = batch(std::cin)) {
            std::error_code ec;
            auto is_new = seen.add_many(lines, ec);
            if (ec == HIBLOOM_ELOST) { /* the server may have forgotten some; nothing was added yet */
                std::cerr << "unique: " << redis.words() << '\n';
                is_new = seen.add_many(lines);
            } else if (ec) {
                throw error(static_cast<hibloom_status>(ec.value()), redis.words());
            }
            for (std::size_t i = 0; i < lines.size(); i++)
                if (is_new[i])
                    std::cout << lines[i] << '\n';
        }
    } catch (const std::exception &e) {
        std::cerr << "unique: " << e.what() << '\n';
        return 1;
    }
    return 0;
}
