from __future__ import annotations

import pytest

from toolverse_jax.environment.spec import EXPRESSION_OPERATORS
from toolverse_jax.synthesis.conditions import Scope, compare, evaluate

SCOPE = Scope(
    arguments={"n": 3, "title": "Owl"},
    bound={
        "row": ("book", {"book_id": "b1", "copies": 2}),
        "rows": ("book", [{"copies": 1}, {"copies": 4}]),
        "gone": ("book", None),
    },
    id_names={"book": "book_id"},
    now="2031-03-03T09:00:00",
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (["arg", "n"], 3),
        (["arg", "missing"], None),
        (["field", "row", "copies"], 2),
        (["field", "gone", "copies"], None),
        (["id", "row"], "b1"),
        (["count", "rows"], 2),
        (["sum", "rows", "copies"], 5),
        (["now"], "2031-03-03T09:00:00"),
        (["coalesce", ["arg", "missing"], ["arg", "title"]], "Owl"),
        (["add", ["arg", "n"], 1], 4),
        (["sub", 0, ["arg", "n"]], -3),
        (["mul", ["arg", "n"], 2], 6),
        (["le", ["arg", "n"], 3], True),
        (["lt", ["arg", "missing"], 3], False),
        (["eq", True, 1], False),
        (["in", ["arg", "title"], ["Owl", "Fox"]], True),
        (["and", True, ["not", False]], True),
        (["or", False, ["ne", 1, 2]], True),
        (["plain", "list"], ["plain", "list"]),
    ],
)
def test_an_expression_has_its_value(expression, value):
    assert evaluate(expression, SCOPE) == value


def test_every_operator_of_the_specification_is_known():
    for name, operands in EXPRESSION_OPERATORS.items():
        expression = [name, *["row"] * (operands or 0)]
        try:
            assert evaluate(expression, SCOPE) is not expression, name
        except (KeyError, TypeError, AttributeError):
            pass  # operands of the wrong kind, but the operator was understood


@pytest.mark.parametrize(
    ("left", "right", "mode", "same"),
    [
        ("Owl Hour", "owl", "contains", True),
        ("Owl", "oWL", "ci", True),
        ("Owl", "owl", "exact", False),
        (3, 3.0, "exact", True),
        ("2031-02-01", "2031-03-01", "le", True),
        (None, 1, "ge", False),
    ],
)
def test_fields_are_compared_as_filters_say(left, right, mode, same):
    assert compare(left, right, mode) is same
