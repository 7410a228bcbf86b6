/* Prints the lines that no program has printed before, as `hibloom uniq` does. In C++, with batches of lines, errors as
 * exceptions, and a call that is made again.
 *
 *   c++ -std=c++17 -o unique unique.cpp $(pkg-config --cflags --libs hibloom)
 *   ./unique 'redis://127.0.0.1:6379?retry=10s' seen < urls > new_urls */
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

/* If the server may have lost lines, it says so once, and nothing was added. */
static answers add(filter &seen, const std::vector<std::string> &lines)
{
    try {
        return seen.add_many(lines);
    } catch (const error &e) {
        if (e.status() != HIBLOOM_ELOST)
            throw;
        std::cerr << "unique: " << e.what() << '\n';
        return seen.add_many(lines);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        std::cerr << "usage: unique URI NAME\n";
        return 2;
    }
    try {
        store redis = store::connect(argv[1]);
        filter seen = filter::open(redis, argv[2], "capacity=10M error=0.001");

        for (auto lines = batch(std::cin); !lines.empty(); lines = batch(std::cin)) {
            const answers is_new = add(seen, lines);
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
