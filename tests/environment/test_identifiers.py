from __future__ import annotations

from itertools import pairwise

import pytest

from toolverse_jax.environment.identifiers import Identifiers, render_identifier
from toolverse_jax.environment.spec import Entity, IdScheme


def entity(scheme: IdScheme) -> Entity:
    return Entity(name="boat", plural="boats", fields=(), id_scheme=scheme)


@pytest.mark.parametrize(
    "scheme",
    [
        IdScheme(prefix="B-", length=4),
        IdScheme(length=6, alphabet="hex"),
        IdScheme(length=5, alphabet="digits"),
        IdScheme(length=5, type="integer"),
        IdScheme(length=1, alphabet="digits"),
    ],
)
def test_identifiers_are_unique_and_lead_back_to_their_rows(scheme: IdScheme) -> None:
    identifiers = Identifiers([entity(scheme)], seed=5)
    identifiers.issue("boat", 299)
    shown = [identifiers.external[f"boat:{n}"] for n in range(300)]
    assert len(set(shown)) == 300
    assert [identifiers.key_of("boat", each) for each in shown] == [f"boat:{n}" for n in range(300)]
    assert all(isinstance(each, int) == (scheme.type == "integer") for each in shown)


def test_an_identifier_depends_on_seed_entity_and_number_alone() -> None:
    at_once, one_by_one = (Identifiers([entity(IdScheme(length=2))], seed=5) for _ in range(2))
    at_once.issue("boat", 80)
    for n in (3, 40, 80):
        one_by_one.issue("boat", n)
    assert at_once.external == one_by_one.external


def test_identifiers_differ_between_seeds_and_do_not_count_up() -> None:
    scheme = IdScheme(length=6, type="integer")
    first = [render_identifier(scheme, 1, "boat", n, 0) for n in range(50)]
    second = [render_identifier(scheme, 2, "boat", n, 0) for n in range(50)]
    assert not set(first) & set(second)
    steps = {int(b) - int(a) for a, b in pairwise(first)}
    assert len(steps) > 45


def test_a_collision_is_resolved_by_hashing_again() -> None:
    scheme = IdScheme(length=1, alphabet="digits")
    candidates = [render_identifier(scheme, 0, "boat", n, 0) for n in range(10)]
    assert len(set(candidates)) < 10, "the example must contain a collision"
    identifiers = Identifiers([entity(scheme)], seed=0)
    identifiers.issue("boat", 9)
    assert len(set(identifiers.external.values())) == 10


@pytest.mark.parametrize("value", [None, True, 1.5, [], {}, "boat:0", "nothing"])
def test_values_that_are_no_identifier_find_no_row(value: object) -> None:
    identifiers = Identifiers([entity(IdScheme(length=5, type="integer"))], seed=0)
    identifiers.issue("boat", 3)
    assert identifiers.key_of("boat", value) is None
