from __future__ import annotations

import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.environment.expressions import Bound, Scope, compare_le, compare_lt, compile_expression
from toolverse_jax.environment.failures import CallFailure
from toolverse_jax.environment.transaction import Transaction
from toolverse_jax.errors import EnvironmentSpecError


@pytest.fixture
def scope(boatyard: Environment) -> Scope:
    bindings = {
        "row": Bound("boat"),
        "rows": Bound("boat", many=True),
        "none": Bound("mooring", optional=True),
    }
    return Scope(boatyard.spec, {"x": {}, "y": {}, "id": {}}, bindings, "tool 't'")


@pytest.fixture
def evaluate(boatyard: Environment, scope: Scope):
    def evaluate(expr, **arguments):
        database = boatyard.database(0)
        tx = Transaction(database.state, database.identifiers, arguments, boatyard.time_at)
        rows = list(database.state.tables["boat"].values())
        tx.bound = {"row": rows[0], "rows": rows, "none": None}
        return compile_expression(expr, scope).evaluate(tx)

    return evaluate


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (["arg", "x"], 3),
        (["arg", "y"], None),
        (["now"], "2031-03-03T09:00:00"),
        (["id", "row"], "boat:0"),
        (["id", "none"], None),
        (["field", "none", "name"], None),
        (["singleton", "harbour", "gate"], "open"),
        (["coalesce", ["arg", "y"], None, 5], 5),
        (["add", ["arg", "x"], 2], 5),
        (["add", "a", "b"], "ab"),
        (["add", 0.1, 0.2], 0.3),
        (["sub", ["arg", "x"], 2], 1),
        (["mul", ["arg", "x"], 0.5], 1.5),
        (["add", ["arg", "y"], 1], None),
        (["eq", ["arg", "x"], 3.0], True),
        (["eq", True, 1], False),
        (["ne", "a", "b"], True),
        (["lt", 1, 2], True),
        (["le", 2, 2], True),
        (["gt", 1, 2], False),
        (["ge", "b", "a"], True),
        (["lt", 1, "2"], False),
        (["lt", None, 2], False),
        (["in", "a", ["a", "b"]], True),
        (["in", True, [1]], False),
        (["and", True, ["eq", 1, 1]], True),
        (["or", False, False], False),
        (["not", ["arg", "y"]], True),
        ("plain", "plain"),
        (["not an operator", 1], ["not an operator", 1]),
    ],
)
def test_an_expression_has_its_value(evaluate, expr, value) -> None:
    result = evaluate(expr, x=3)
    assert result == value and type(result) is type(value)


def test_counting_and_adding_up_run_over_bound_rows(evaluate, boatyard: Environment) -> None:
    rows = boatyard.session(0).rows("boat")
    assert evaluate(["count", "rows"]) == len(rows)
    assert evaluate(["sum", "rows", "fuel_l"]) == sum(row["fuel_l"] for row in rows)


def test_an_argument_beside_a_row_is_read_as_an_identifier(evaluate, boatyard: Environment) -> None:
    boat = boatyard.session(0).rows("boat")[0]
    assert evaluate(["eq", ["arg", "id"], ["id", "row"]], id=boat["boat_id"]) is True
    assert evaluate(["eq", ["arg", "id"], ["id", "row"]], id="boat:0") is False
    assert evaluate(["eq", ["id", "none"], ["arg", "id"]], id="MO-none") is False
    assert evaluate(["eq", ["field", "row", "mooring_id"], ["arg", "id"]], id=boat["mooring_id"]) is True


def test_a_day_includes_its_hours() -> None:
    assert compare_le("2031-03-05T18:00:00", "2031-03-05")
    assert not compare_le("2031-03-06T00:00:00", "2031-03-05")
    assert compare_le("2031-03-05", "2031-03-05T18:00:00")
    assert not compare_lt("2031-03-05", "2031-03-05T18:00:00")


@pytest.mark.parametrize("expr", [["mul", 1e12, 1e12], ["add", 1e300, 1e300]])
def test_numbers_out_of_range_fail_the_call(evaluate, expr) -> None:
    with pytest.raises(CallFailure) as failure:
        evaluate(expr)
    assert failure.value.code == "limit_exceeded"


def test_adding_a_text_to_a_number_fails_the_call(evaluate) -> None:
    with pytest.raises(CallFailure) as failure:
        evaluate(["add", "a", 1])
    assert failure.value.code == "unsupported"


@pytest.mark.parametrize(
    ("expr", "problem"),
    [
        (["arg", "z"], "argument 'z' is not in the input schema"),
        (["arg"], "operator 'arg' takes 1 operand"),
        (["eq", 1], "operator 'eq' takes 2 operand"),
        (["and"], "operator 'and' needs at least one operand"),
        (["field", "other", "name"], "binding 'other' does not exist"),
        (["field", "rows", "name"], "binding 'rows' is a list of rows"),
        (["count", "row"], "binding 'row' is one row"),
        (["field", "row", "colour"], "entity 'boat' has no field 'colour'"),
        (["sum", "rows", "name"], "cannot sum field 'name'"),
        (["singleton", "sea", "x"], "singleton 'sea' does not exist"),
        (["singleton", "harbour", "x"], "singleton 'harbour' has no field 'x'"),
        (["coalesce", ["id", "row"], "x"], "mix rows of different entities"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_place(scope: Scope, expr, problem: str) -> None:
    with pytest.raises(EnvironmentSpecError, match="environment 'boatyard', tool 't': ") as error:
        compile_expression(expr, scope)
    assert problem in str(error.value)
