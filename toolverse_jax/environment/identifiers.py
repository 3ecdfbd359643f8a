"""Identifiers: what callers see in place of internal row keys.

Row `n` of an entity has the internal key `"<entity>:<n>"` (n counts from 0, seed rows first). Its
identifier is drawn from BLAKE2b(seed, entity, n), so it differs between episodes, cannot be guessed
by counting, and needs no state: any session of the same seed gives the same row the same identifier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from toolverse_jax.environment.spec import Entity, IdScheme

ALPHABETS = {
    "hex": "0123456789abcdef",
    "digits": "0123456789",
    "alnum": "0123456789abcdefghjkmnpqrstvwxyz",  # no i, l, o, u: they are misread
}
_ATTEMPTS_PER_LENGTH = 64


def row_key(entity: str, n: int) -> str:
    """Return the internal key of row `n` of an entity."""
    return f"{entity}:{n}"


def stable_int(*parts: object) -> int:
    """Return a 128-bit integer that depends on the parts only, in every process."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())


def render_identifier(scheme: IdScheme, seed: int, entity: str, n: int, attempt: int) -> str | int:
    """Return candidate number `attempt` for the identifier of row `n`."""
    length = scheme.length + attempt // _ATTEMPTS_PER_LENGTH
    value = stable_int("id", seed, entity, n, attempt)
    if scheme.type == "integer":
        lowest = 10 ** (length - 1)
        return lowest + value % (9 * lowest)
    alphabet = ALPHABETS[scheme.alphabet]
    characters = []
    for _ in range(length):
        value, index = divmod(value, len(alphabet))
        characters.append(alphabet[index])
    return scheme.prefix + "".join(characters)


class Identifiers:
    """Both directions between keys and identifiers for one seed, grown as rows are created.

    Shared by all sessions of the seed; an identifier known here need not exist in a given session.
    """

    __slots__ = ("_schemes", "_seed", "external", "internal")

    def __init__(self, entities: Iterable[Entity], seed: int) -> None:
        self._seed = seed
        self._schemes = {entity.name: entity.id_scheme for entity in entities}
        self.external: dict[str, str | int] = {}
        """Internal key -> identifier."""
        self.internal: dict[str, dict[str | int, str]] = {name: {} for name in self._schemes}
        """Entity -> identifier -> internal key."""

    def issue(self, entity: str, n: int) -> str:
        """Make sure rows 0..n of an entity have identifiers; return the key of row `n`.

        A collision inside the entity is resolved by hashing again, so identifiers are unique and
        depend on (seed, entity, n) alone.
        """
        taken = self.internal[entity]
        scheme = self._schemes[entity]
        for i in range(len(taken), n + 1):
            attempt = 0
            candidate = render_identifier(scheme, self._seed, entity, i, attempt)
            while candidate in taken:
                attempt += 1
                candidate = render_identifier(scheme, self._seed, entity, i, attempt)
            key = row_key(entity, i)
            taken[candidate] = key
            self.external[key] = candidate
        return row_key(entity, n)

    def key_of(self, entity: str, identifier: object) -> str | None:
        """Return the key that an identifier stands for, or None."""
        if type(identifier) is str or type(identifier) is int:
            return self.internal[entity].get(identifier)
        if isinstance(identifier, float) and identifier.is_integer():
            return self.internal[entity].get(int(identifier))
        return None
