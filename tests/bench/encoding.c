/* The library's encoding.c, for the bench alone: how many bits share a BITFIELD is a variable here. */
#include "bench.h"

#include "redis/encoding.h"

uint32_t bench_bitfield_bits = BITFIELD_BITS;

#undef BITFIELD_BITS
#define BITFIELD_BITS bench_bitfield_bits
#include "redis/encoding.c"
