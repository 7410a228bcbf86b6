<?php
/* The filter of source document 004: seven seeds and one mask, for uids. It has
 * no settings. */
declare(strict_types=1);

require __DIR__ . '/peer.php';
require __DIR__ . '/poly.php';

final class UidFilter implements Filter
{
    public function bits(string $item): ?array
    {
        $bits = [];
        foreach ([7, 11, 13, 17, 19, 23, 29] as $seed) {
            $bits[] = ['', polynomial($item, $seed, 0x3FFFFFF)];
        }
        return $bits;
    }
}

peer($argv, fn (): Filter => new UidFilter());
