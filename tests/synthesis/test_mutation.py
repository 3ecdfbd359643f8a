from __future__ import annotations

import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.synthesis.mutation import check_mutants, mutants
from toolverse_jax.synthesis.probe import Probe


@pytest.fixture(scope="module")
def report(spec):
    return check_mutants(spec, Probe(spec, Environment(spec).session))


def test_the_laws_notice_every_mutant_of_the_sample(report):
    assert report.survivors == ()
    assert report.killed == report.total > 35
    assert report.kill_rate == 1.0


def test_kinds_of_mutants_cover_reads_writes_and_conditions(report):
    wanted = {"drop guard", "ignore filter", "ignore argument", "swap fields", "skip write", "skip delete"}
    wanted |= {"skip transition", "negate amount", "extra write", "wrong code in guard", "wrong fate"}
    assert wanted <= set(report.by_kind)


def test_counts_by_kind_add_up(report):
    assert sum(total for _, total in report.by_kind.values()) == report.total
    assert sum(killed for killed, _ in report.by_kind.values()) == report.killed


def test_mutants_differ_from_the_original_and_from_each_other(spec):
    broken = list(mutants(spec))
    names = [mutant.name for mutant in broken]
    assert len(set(names)) == len(names)
    assert all(mutant.spec != spec for mutant in broken)


def test_a_mutant_that_behaves_the_same_survives_and_is_listed(spec):
    # A second guard that never fires alone: dropping it changes nothing anyone can see.
    operation = spec.operation("update_book")
    twice = operation.model_copy(update={"guards": operation.guards * 2})
    doubled = spec.model_copy(
        update={"operations": tuple(twice if o.tool == twice.tool else o for o in spec.operations)}
    )
    report = check_mutants(doubled, Probe(doubled, Environment(doubled).session))
    assert "update_book: drop guard of number 1" in report.survivors
    assert report.kill_rate < 1.0
