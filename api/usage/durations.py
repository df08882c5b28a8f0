"""Histograms of response times that add up.

A histogram is a list of integers, one for each bucket with requests, ascending: `bucket << 48 | count`. Each power of
two is divided into eight buckets, so a percentile is off by at most 12.5 %. `partner.durations_add` adds two of them.
"""

from collections.abc import Iterable, Mapping, Sequence

_COUNT_BITS = 48
_SUB_BITS = 3  # eight buckets in each power of two
_FINE = 2 << _SUB_BITS  # below this, each microsecond has its bucket


def bucket_of(took_us: int) -> int:
    """The bucket of a duration in microseconds."""
    shift = took_us.bit_length() - _SUB_BITS - 1
    return took_us if shift <= 0 else (shift << _SUB_BITS) + (took_us >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """The shortest duration of a bucket, and that of the next one, in microseconds."""
    if bucket < _FINE:
        return bucket, bucket + 1
    shift = (bucket >> _SUB_BITS) - 1
    lowest = (bucket - (shift << _SUB_BITS)) << shift
    return lowest, lowest + (1 << shift)


def packed(counts: Mapping[int, int]) -> list[int]:
    """A histogram from counts by bucket."""
    return [bucket << _COUNT_BITS | counts[bucket] for bucket in sorted(counts)]


def unpacked(histogram: Iterable[int]) -> list[tuple[int, int]]:
    """The buckets of a histogram and their counts, ascending."""
    return [(entry >> _COUNT_BITS, entry & ((1 << _COUNT_BITS) - 1)) for entry in histogram]


def percentiles_ms(histogram: Sequence[int], percents: Sequence[int]) -> list[float]:
    """For each of these percents, ascending, the duration in milliseconds that this share of requests did not exceed.

    Within a bucket, requests count as evenly spread. All are 0 without requests.
    """
    counts = unpacked(histogram)
    total = sum(count for _, count in counts)
    percentiles: list[float] = []
    buckets, before = iter(counts), 0
    bucket, count = next(buckets, (0, 0))
    for percent in percents:
        rank = -(-total * percent // 100)
        while before + count < rank:
            before += count
            bucket, count = next(buckets)
        low, high = bounds_of(bucket)
        percentiles.append(round((low + (high - low) * (rank - before) / count) / 1000, 3) if count else 0.0)
    return percentiles
