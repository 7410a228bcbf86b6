/* share/peers.c: filters shared with PHP and Python, on a real Redis, both ways.
 *
 * The other side are the programs of source documents 000 to 004, as written for these tests in this folder; Python's with
 * a murmur3 that is not ours. Its interpreter is named by its path: the modules belong to the system's own Python. */
#include "share/sharing.h"

#define MT \
    { \
        "php", "tests/share/php_mt.php" \
    }
#define POLY8 \
    { \
        "php", "tests/share/php_poly8.php" \
    }
#define UIDS \
    { \
        "php", "tests/share/php_uids.php" \
    }

#define MEMORY \
    { \
        "/usr/bin/python3", "-B", "tests/share/py_mmh3.py" \
    }
#define REDIS \
    { \
        "/usr/bin/python3", "-B", "tests/share/py_mmh3_redis.py" \
    }

static void positions_are_those_of_php_and_python(void **state)
{
    static const struct peer peers[] = {
        {"php-mt bits=10 capacity=2", MT, {"10", "2"}}, /* the documents' own example */
        {"php-mt bits=1 capacity=1", MT, {"1", "1"}},
        {"php-mt bits=600000 capacity=30000", MT, {"600000", "30000"}},
        {"php-mt bits=1000003 capacity=5500", MT, {"1000003", "5500"}}, /* k = 127 */
        {"php-mt bits=134217728 capacity=10000000", MT, {"134217728", "10000000"}},
        {"php-mt bits=2147483649 capacity=200000000", MT, {"2147483649", "200000000"}},
        {"php-mt bits=3000000000 capacity=300000000", MT, {"3000000000", "300000000"}},
        {"php-mt bits=4294967296 capacity=400000000", MT, {"4294967296", "400000000"}},
        {"php-mt bits=4294967297 capacity=400000000", MT, {"4294967297", "400000000"}},
        {"php-mt bits=3458764513820540928 capacity=300000000000000000",
         MT,
         {"3458764513820540928", "300000000000000000"}},
        {"php-mt-legacy bits=10 capacity=2", MT, {"10", "2", "legacy"}},
        {"php-mt-legacy bits=600000 capacity=30000", MT, {"600000", "30000", "legacy"}},
        {"php-mt-legacy bits=3000000000 capacity=300000000", MT, {"3000000000", "300000000", "legacy"}},
        {"php-mt-legacy bits=9007199254740994 capacity=900000000000000",
         MT,
         {"9007199254740994", "900000000000000", "legacy"}},
        {"php-poly8", POLY8, {NULL}},
        {"php-poly8 bits=1000003", POLY8, {"1000003"}},
        {"php-poly8 bits=576460752303423488 seeds=2,5,257,65537,4294967291",
         POLY8,
         {"576460752303423488", "2,5,257,65537,4294967291"}},
        {"php-uids", UIDS, {NULL}},
        {"py-mmh3 capacity=1 error=0.9", MEMORY, {"1", "0.9"}},
        {"py-mmh3 capacity=30000 error=0.001", MEMORY, {"30000", "0.001"}},
        {"py-mmh3 capacity=1000 error=1e-38", MEMORY, {"1000", "1e-38"}},                   /* k = 126 */
        {"py-mmh3 capacity=300000000 error=0.01", MEMORY, {"300000000", "0.01"}},           /* m > 2^31 */
        {"py-mmh3 capacity=1000000000 error=0.0001", MEMORY, {"1000000000", "0.0001"}},     /* m > 2^32 */
        {"py-mmh3 capacity=10000000000001 error=0.01", MEMORY, {"10000000000001", "0.01"}}, /* m is rounded */
        {"py-mmh3-redis capacity=30000 error=0.001", REDIS, {"30000", "0.001"}},
        {"py-mmh3-redis capacity=1000000000 error=0.01", REDIS, {"1000000000", "0.01"}},
    };

    for (size_t i = 0; i < COUNT(peers); i++)
        compare_positions(&peers[i]);
}

static void each_side_reads_what_the_other_has_filled(void **state)
{
    static const struct peer peers[] = {
        {"php-mt bits=40000 capacity=2000", MT, {"40000", "2000"}},
        {"php-mt bits=1000003 capacity=70000", MT, {"1000003", "70000"}},
        {"php-mt-legacy bits=40000 capacity=2000", MT, {"40000", "2000", "legacy"}},
        {"php-poly8 bits=1048576", POLY8, {"1048576"}},
        {"php-poly8 bits=100000 seeds=3,5,61", POLY8, {"100000", "3,5,61"}},
        {"php-uids", UIDS, {NULL}},
        {"py-mmh3 capacity=2000 error=0.01", MEMORY, {"2000", "0.01"}},
        {"py-mmh3 capacity=1000 error=0.2", MEMORY, {"1000", "0.2"}}, /* overfull: many a wrong maybe */
        {"py-mmh3-redis capacity=2000 error=0.01", REDIS, {"2000", "0.01"}},
        {"py-mmh3-redis capacity=1000 error=0.1", REDIS, {"1000", "0.1"}},
    };

    for (size_t i = 0; i < COUNT(peers); i++)
        compare_filters(&peers[i]);
}

static void bits_beyond_2_to_the_31_are_the_same(void **state)
{
    static const struct peer peer = {"php-mt bits=2200000001 capacity=220000000", MT, {"2200000001", "220000000"}};

    compare_large_filter(&peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_those_of_php_and_python),
        cmocka_unit_test(each_side_reads_what_the_other_has_filled),
        cmocka_unit_test(bits_beyond_2_to_the_31_are_the_same),
    };

    return cmocka_run_group_tests_name("share with PHP and Python", tests, NULL, NULL);
}
