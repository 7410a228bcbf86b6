/* share_python.c: filters shared with Python, on a real Redis, both ways.
 *
 * The other side are the two programs of source document 003, as written for
 * these tests in tests/share, with a murmur3 that is not ours. Its interpreter
 * is named by its path: the modules belong to the system's own Python. */
#include "share/sharing.h"

#define MEMORY \
    { \
        "/usr/bin/python3", "-B", "tests/share/py_mmh3.py" \
    }
#define REDIS \
    { \
        "/usr/bin/python3", "-B", "tests/share/py_mmh3_redis.py" \
    }

static void positions_are_those_of_python(void **state)
{
    static const struct peer peers[] = {
        {"py-mmh3 capacity=1 error=0.9", MEMORY, {"1", "0.9"}},
        {"py-mmh3 capacity=30000 error=0.001", MEMORY, {"30000", "0.001"}},
        {"py-mmh3 capacity=1000 error=1e-38", MEMORY, {"1000", "1e-38"}},                   /* k = 126 */
        {"py-mmh3 capacity=300000000 error=0.01", MEMORY, {"300000000", "0.01"}},           /* m > 2^31 */
        {"py-mmh3 capacity=1000000000 error=0.0001", MEMORY, {"1000000000", "0.0001"}},     /* m > 2^32 */
        {"py-mmh3 capacity=10000000000001 error=0.01", MEMORY, {"10000000000001", "0.01"}}, /* m is rounded */
        {"py-mmh3-redis capacity=30000 error=0.001", REDIS, {"30000", "0.001"}},
        {"py-mmh3-redis capacity=1000000000 error=0.01", REDIS, {"1000000000", "0.01"}},
    };

    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        compare_positions(&peers[i]);
}

static void each_side_reads_what_the_other_has_filled(void **state)
{
    static const struct peer peers[] = {
        {"py-mmh3 capacity=2000 error=0.01", MEMORY, {"2000", "0.01"}},
        {"py-mmh3 capacity=1000 error=0.2", MEMORY, {"1000", "0.2"}}, /* overfull: many a wrong maybe */
        {"py-mmh3-redis capacity=2000 error=0.01", REDIS, {"2000", "0.01"}},
        {"py-mmh3-redis capacity=1000 error=0.1", REDIS, {"1000", "0.1"}},
    };

    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        compare_filters(&peers[i]);
}

static void bits_beyond_2_to_the_31_are_the_same(void **state)
{
    static const struct peer peer = {"py-mmh3-redis capacity=220000000 error=0.01", REDIS, {"220000000", "0.01"}};

    compare_large_filter(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_those_of_python),
        cmocka_unit_test(each_side_reads_what_the_other_has_filled),
        cmocka_unit_test(bits_beyond_2_to_the_31_are_the_same),
    };

    return cmocka_run_group_tests_name("share with Python", tests, NULL, NULL);
}
