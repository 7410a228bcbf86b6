/* hash_load.h: the old name of load.h, until file.c includes that. */
#include "hash/load.h"
