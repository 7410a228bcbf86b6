/* musl has no checking forms of these functions, which Debian's libhiredis.a calls, as it is compiled for glibc with
 * _FORTIFY_SOURCE. Here they do not check. For tests/tools/musl.sh alone: on a system of musl, hiredis calls musl's. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t len, size_t room);
int __vsnprintf_chk(char *out, size_t len, int flag, size_t room, const char *format, va_list values);
int __snprintf_chk(char *out, size_t len, int flag, size_t room, const char *format, ...);
int __sprintf_chk(char *out, int flag, size_t room, const char *format, ...);

void *__memcpy_chk(void *to, const void *from, size_t len, size_t room)
{
    return memcpy(to, from, len);
}

int __vsnprintf_chk(char *out, size_t len, int flag, size_t room, const char *format, va_list values)
{
    return vsnprintf(out, len, format, values);
}

int __snprintf_chk(char *out, size_t len, int flag, size_t room, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    const int n = vsnprintf(out, len, format, values);
    va_end(values);
    return n;
}

int __sprintf_chk(char *out, int flag, size_t room, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    const int n = vsprintf(out, format, values);
    va_end(values);
    return n;
}
