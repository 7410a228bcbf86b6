/* A URI with options behind it, in short. */
#ifndef HIBLOOM_TEST_WITH_OPTIONS_H
#define HIBLOOM_TEST_WITH_OPTIONS_H

/* "redis://h" and "retry=%ums" give "redis://h?retry=20ms"; to a URI that has options these are added. Without options it
 * is as it was. The text lasts for the next 15 calls of this thread. */
__attribute__((format(printf, 2, 3))) const char *with_options(const char *uri, const char *format, ...);

#endif
