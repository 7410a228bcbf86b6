/* Whether a test program may replace malloc and its kin: REPLACED. Under ASan, which has done so itself, it may not. */
#ifndef HIBLOOM_TEST_REPLACED_H
#define HIBLOOM_TEST_REPLACED_H

#if defined(__SANITIZE_ADDRESS__)
#define REPLACED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPLACED 0
#endif
#endif
#ifndef REPLACED
#define REPLACED 1
#endif

#endif
