"""Sources of randomness that are owned by names and numbers, never by the process."""

from __future__ import annotations

import hashlib
import random


def derived_seed(*parts: object) -> int:
    """Return a 64-bit seed owned by the given names and numbers."""
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def seeded_random(*parts: object) -> random.Random:
    """Return a source of randomness owned by the given names and numbers."""
    return random.Random(derived_seed(*parts))
