"""53-bit, time-ordered integer ids: seconds since 2025, node, counter."""

import threading

EPOCH = 1_735_689_600  # 2025-01-01T00:00:00Z
NODE_BITS, COUNTER_BITS = 8, 14
NODES = 1 << NODE_BITS
PER_SECOND = 1 << COUNTER_BITS
LARGEST = (1 << 53) - 1


class LeaseOver(Exception):
    """The node's lease ended; take a slot again before making ids."""


class IdMaker:
    """Makes ids for one leased node slot; safe to share between threads."""

    def __init__(self, node: int, last: int, lease_until: int) -> None:
        """Start after `last`, and make nothing that belongs past `lease_until` (seconds)."""
        self.node = node
        self.lease_until = lease_until
        self._lock = threading.Lock()
        self._second, self._counter = (last >> (NODE_BITS + COUNTER_BITS)) + 1, 0

    def next(self, now: int) -> int:
        """Make one id; a second that runs out borrows the next one."""
        with self._lock:
            second = max(now - EPOCH, self._second)
            self._counter = 0 if second > self._second else self._counter
            if self._counter == PER_SECOND:
                second, self._counter = second + 1, 0
            if second + EPOCH >= self.lease_until:
                raise LeaseOver
            self._second, counter = second, self._counter
            self._counter += 1
            return (second << (NODE_BITS + COUNTER_BITS)) | (self.node << COUNTER_BITS) | counter

    @property
    def last(self) -> int:
        """The newest id that may have been given out."""
        return (self._second << (NODE_BITS + COUNTER_BITS)) | (self.node << COUNTER_BITS) | self._counter


def first(second: int) -> int:
    """The smallest id that a second, counted from 1970 on, can bring."""
    return max(0, second - EPOCH) << (NODE_BITS + COUNTER_BITS)


def parse(text: str) -> int | None:
    """Read an id from its decimal text; None when it cannot be one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        return None
    number = int(text)
    return number if 0 < number <= LARGEST else None
