/* Strings in JSON. JSON is UTF-8, and the name of a Redis key is any bytes. A byte that is part
 * of no character becomes U+FFFD. */
#include "json.h"
#include "output.h"

/* RFC 3629 has no overlong forms, no surrogates and nothing past U+10FFFF. The zero at the end of the text continues no character,
 * so nothing behind it is read. */
size_t json_character_length(const unsigned char *p)
{
    unsigned char low = 0x80, high = 0xbf; /* the second byte's range */
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if ((p[0] >= 0x80 && p[0] < 0xc2) || p[0] > 0xf4)
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xbf)
        if (p[i] < low || p[i] > high)
            return 0;
    return len;
}

void json_put_string(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len;

    output_bytes("\"", 1);
    for (; *p != '\0'; p += len > 0 ? len : 1) {
        len = json_character_length(p);
        if (len == 0)
            output_text("\\ufffd");
        else if (*p < 0x20)
            output_text("\\u%04x", *p);
        else if (*p == '"' || *p == '\\')
            output_text("\\%c", *p);
        else
            output_bytes(p, len);
    }
    output_bytes("\"", 1);
}
