/* Whether a call gave up in time. See in_time.h. */
#include "in_time.h"

bool in_time(uint64_t since)
{
    return test_now_ms() - since < 2 * TIMEOUT_MS + SLACK_MS;
}

bool gave_up_in_time(uint64_t since)
{
    assert_true(test_now_ms() - since >= TIMEOUT_MS * 9 / 10);
    return in_time(since);
}
