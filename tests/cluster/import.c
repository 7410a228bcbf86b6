/* hibloom_import into a cluster: what it renames at its end has to lie in one slot. */
#include "../support/module_dump.h"
#include "../support/redis_cluster.h"
#include "../support/temp_dir.h"
#include "../support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct redis_cluster *cluster;
static hibloom_store *store;

static int set_up(void **state)
{
    cluster = redis_cluster_start(&(struct redis_cluster_options){.primaries = 3});
    store = test_connect(redis_cluster_uri(cluster), NULL);
    return 0;
}

static int tear_down(void **state)
{
    hibloom_store_free(store);
    redis_cluster_stop(cluster);
    return 0;
}

/* Before a piece of it is moved: nothing is left behind, and no server was asked to make anything. */
static void one_of_several_links_needs_a_tag(void **state)
{
    char *dir = temp_dir_make(), *path = temp_dir_path(dir, "dump"), item[32];
    struct module_dump dump;
    hibloom *filter = NULL;
    hibloom_info info;
    bool found;

    module_dump_make_growing(&dump, 0.01, 10, 2);
    const unsigned added = module_dump_fill(&dump, 55);
    module_dump_write(&dump, path);
    assert_status(hibloom_import_file(&filter, store, "seen", path), HIBLOOM_ENOTSUP, store);
    assert_non_null(strstr(hibloom_store_error(store), "has a {tag}"));
    assert_null(filter);
    assert_ok(hibloom_import_file(&filter, store, "{tag}seen", path), store);
    for (unsigned i = 0; i < added; i++) {
        const int len = snprintf(item, sizeof item, "in %u", i);
        assert_ok(hibloom_contains(filter, item, (size_t)len, &found), store);
        assert_true(found);
    }
    assert_ok(hibloom_get_info(filter, &info), store);
    assert_int_equal(info.keys, 3);
    assert_int_equal(info.ttl_ms, -1);
    assert_dropped(filter, store);
    module_dump_free(&dump);
    free(path);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_several_links_needs_a_tag),
    };

    return cmocka_run_group_tests_name("cluster: import", tests, set_up, tear_down);
}
