from __future__ import annotations

import json

import pytest

from toolverse_jax.environment.spec import EnvSpec, Guard, Output
from toolverse_jax.synthesis.validate import LAYERS, validate


def _replace(spec: EnvSpec, tool: str, **changes) -> EnvSpec:
    operations = tuple(o.model_copy(update=changes) if o.tool == tool else o for o in spec.operations)
    return spec.model_copy(update={"operations": operations})


@pytest.fixture(scope="module")
def report(spec):
    return validate(spec)


def test_a_sound_environment_is_accepted_with_checks_in_every_layer(report):
    assert report.accepted and report.reasons == ()
    assert list(report.checks) == list(LAYERS)
    assert all(count.passed > 0 and count.failed == 0 for count in report.checks.values())


def test_every_situation_of_the_sample_is_reached(report):
    assert report.unreached == ()


def test_the_report_has_the_same_bytes_on_every_run(spec, report):
    assert json.dumps(validate(spec).to_json()) == json.dumps(report.to_json())


def _stub(spec: EnvSpec, tool: str) -> EnvSpec:
    """Make a tool one that says it does nothing, as authors do with tools no rows can stand for."""
    guard = Guard(condition=False, code="unsupported", message="This tool does nothing in this environment.")
    changes = {
        "verb": "other",
        "guards": (guard,),
        "steps": (),
        "output": Output(shape="scalar"),
        "simulated": "none",
    }
    return _replace(spec, tool, **changes)


def test_one_honest_stub_among_many_tools_is_accepted(spec):
    assert validate(_stub(spec, "remove_shelf")).accepted


def test_many_stubs_are_a_reason_to_reject(spec):
    stubs = spec
    for tool in ("remove_shelf", "count_books", "lend_book"):
        stubs = _stub(stubs, tool)
    document = validate(stubs).to_json()
    assert document["accepted"] is False
    assert any("do what they say" in reason for reason in document["reasons"])


def test_a_tool_that_calls_itself_a_stub_but_works_is_a_reason_to_reject(spec):
    report = validate(_replace(spec, "remove_shelf", simulated="none"))
    assert not report.accepted
    assert any("says so" in reason for reason in report.reasons)


def test_a_specification_that_does_not_compile_is_rejected_with_its_sentence(spec):
    broken = _replace(spec, "get_book", output=Output(shape="record", source="nothing", entity="book"))
    report = validate(broken)
    assert not report.accepted
    assert len(report.reasons) == 1 and "nothing" in report.reasons[0]


def test_an_answer_that_never_varies_is_a_reason_to_reject(spec):
    constant = _replace(spec, "count_books", output=Output(shape="scalar", extra={"count": 3}), verb="other")
    report = validate(constant)
    assert not report.accepted
    assert any("never vary" in reason for reason in report.reasons)


def test_ignored_parameters_are_a_reason_to_reject(spec):
    changed = spec
    for operation in spec.operations:
        args = {
            n: b.model_copy(update={"role": "ignored"})
            for n, b in operation.args.items()
            if b.role == "field"
        }
        if args:
            changed = _replace(changed, operation.tool, args={**operation.args, **args})
    report = validate(changed)
    assert not report.accepted
    assert any("have no effect" in reason for reason in report.reasons)
