<?php
/* The filter of source documents 000 and 002: the item's crc32 seeds mt_rand,
 * and its k draws from 0 to m - 1 are the bits. As the documents have it, with
 * the bits in Redis where they have an array.
 *
 * Settings: BITS CAPACITY, and "legacy" to draw as PHP 5 did. */
declare(strict_types=1);

require __DIR__ . '/peer.php';

final class MtFilter implements Filter
{
    private int $hashes;

    public function __construct(private int $bits, int $capacity, private int $mode)
    {
        $this->hashes = (int) ceil(($bits / $capacity) * log(2));
    }

    public function bits(string $item): ?array
    {
        $bits = [];
        mt_srand(crc32($item), $this->mode);
        for ($i = 0; $i < $this->hashes; $i++) {
            $bits[] = ['', mt_rand(0, $this->bits - 1)];
        }
        return $bits;
    }
}

peer($argv, fn (string $bits, string $capacity, string $generator = ''): Filter => new MtFilter(
    (int) $bits,
    (int) $capacity,
    $generator === 'legacy' ? MT_RAND_PHP : MT_RAND_MT19937
));
