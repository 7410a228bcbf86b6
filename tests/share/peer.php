<?php
/* What the PHP programs of the tests share: their command line, the items they
 * are given, and Redis. The filters themselves are as unlike ours as PHP makes
 * them; nothing of the library is used.
 *
 *   php PROGRAM.php positions SETTINGS...        < ITEMS
 *   php PROGRAM.php fill|read URI KEY SETTINGS... < ITEMS
 *
 * An item is its length in four bytes, the lowest first, and its bytes.
 * positions prints a line an item, read prints 1 or 0 an item. */
declare(strict_types=1);

/* That a double loses precision as an int is the very behaviour wanted here. */
error_reporting(E_ALL & ~E_DEPRECATED);
ini_set('display_errors', 'stderr');
set_error_handler(function (int $level, string $text, string $file, int $line): bool {
    if (error_reporting() & $level) {
        throw new ErrorException($text, 0, $level, $file, $line);
    }
    return true;
});

interface Filter
{
    /* The bits of an item, each as [what follows KEY in its key's name, offset];
     * null for an item that is neither added nor found. */
    public function bits(string $item): ?array;
}

function items(): iterable
{
    while (($head = stream_get_contents(STDIN, 4)) !== '') {
        $length = unpack('V', $head)[1];
        yield $length === 0 ? '' : stream_get_contents(STDIN, $length);
    }
}

function connect(string $uri): Redis
{
    $redis = new Redis();
    if (preg_match('~^unix://(/[^?]+)(?:\?db=(\d+))?$~', $uri, $part)) {
        $redis->connect($part[1]);
        $db = $part[2] ?? '0';
    } elseif (preg_match('~^redis://(?:([^:@]*):([^@]*)@)?([^:/]+)(?::(\d+))?(?:/(\d+))?$~', $uri, $part)) {
        $redis->connect($part[3], (int) (($part[4] ?? '') ?: 6379));
        if (($part[2] ?? '') !== '') {
            $redis->auth($part[1] === '' ? $part[2] : [$part[1], $part[2]]);
        }
        $db = $part[5] ?? '0';
    } else {
        throw new InvalidArgumentException("no URI for this program: $uri");
    }
    $redis->select((int) $db);
    return $redis;
}

function positions(Filter $filter): void
{
    foreach (items() as $item) {
        echo implode(',', array_map(
            fn (array $bit): string => ltrim("$bit[0]:$bit[1]", ':'),
            $filter->bits($item) ?? []
        )), "\n";
    }
}

function fill(Filter $filter, Redis $redis, string $key): void
{
    foreach (items() as $item) {
        $pipeline = $redis->pipeline();
        foreach ($filter->bits($item) ?? [] as [$suffix, $offset]) {
            $pipeline->setBit($key . $suffix, $offset, true);
        }
        if (in_array(false, $pipeline->exec(), true)) {
            throw new RuntimeException((string) $redis->getLastError());
        }
    }
}

function read(Filter $filter, Redis $redis, string $key): void
{
    foreach (items() as $item) {
        $bits = $filter->bits($item);
        $pipeline = $redis->pipeline();
        foreach ($bits ?? [] as [$suffix, $offset]) {
            $pipeline->getBit($key . $suffix, $offset);
        }
        $set = $pipeline->exec();
        if (in_array(false, $set, true)) {
            throw new RuntimeException((string) $redis->getLastError());
        }
        echo $bits !== null && array_sum($set) === count($bits) ? 1 : 0, "\n";
    }
}

/* Runs a program. $make makes the filter from its settings. */
function peer(array $argv, callable $make): void
{
    switch ($argv[1]) {
        case 'positions':
            positions($make(...array_slice($argv, 2)));
            break;
        case 'fill':
            fill($make(...array_slice($argv, 4)), connect($argv[2]), $argv[3]);
            break;
        case 'read':
            read($make(...array_slice($argv, 4)), connect($argv[2]), $argv[3]);
            break;
        default:
            throw new InvalidArgumentException("no such mode: $argv[1]");
    }
}
