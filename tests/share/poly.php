<?php
/* The polynomial that source documents 001 and 004 hash with. $hash is left to
 * become a float, and the & to make an int of it again, as PHP will. */
declare(strict_types=1);

function polynomial(string $item, int $seed, int $mask): int
{
    $hash = 0;
    for ($i = 0; $i < strlen($item); $i++) {
        $hash = $seed * $hash + ord($item[$i]);
    }
    return $mask & $hash;
}
