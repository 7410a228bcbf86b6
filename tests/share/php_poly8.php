<?php
/* The filter of source document 001: for each seed a bitmap of its own, and
 * nothing done with an item that equals null, which "" does and "0" does not.
 * Where the document has arrays, these are the keys KEY:0, KEY:1, ...
 *
 * Settings: BITS and SEEDS, comma-separated, or neither for the document's. */
declare(strict_types=1);

require __DIR__ . '/peer.php';
require __DIR__ . '/poly.php';

final class PartitionedFilter implements Filter
{
    public function __construct(private int $size, private array $seeds)
    {
    }

    public function bits(string $item): ?array
    {
        if ($item == null) {
            return null;
        }
        $bits = [];
        foreach ($this->seeds as $i => $seed) {
            $bits[] = [":$i", polynomial($item, $seed, $this->size - 1)];
        }
        return $bits;
    }
}

peer($argv, fn (?string $bits = null, string $seeds = '3,5,7,11,13,31,37,61'): Filter => new PartitionedFilter(
    $bits === null ? 256 << 22 : (int) $bits,
    array_map('intval', explode(',', $seeds))
));
