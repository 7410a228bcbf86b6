// hibloom.h in a project of C++11, which stays one: hibloom::hibloom asks for no more.
#include <hibloom/hibloom.h>

static_assert(__cplusplus == 201103L, "not the standard that the project has set");

int main()
{
    return hibloom_version()[0] == '\0';
}
