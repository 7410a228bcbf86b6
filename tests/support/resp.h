/* The framing of Redis' protocol, and nothing else of it: where a request or a reply ends. Servers of the tests need it
 * to count, to record and to replace; it is theirs, and not the library's, which is under test. */
#ifndef HIBLOOM_TEST_RESP_H
#define HIBLOOM_TEST_RESP_H

#include <stddef.h>

/* The length of the first value in bytes[0, len), a request or a reply with
 * all its elements; 0 while it is not whole. */
size_t resp_length(const char *bytes, size_t len);

#endif
