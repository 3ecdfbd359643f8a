from __future__ import annotations

import pytest

from toolverse_jax.environment import Environment
from toolverse_jax.synthesis.controls import CONTROLS, control_sessions
from toolverse_jax.synthesis.validate import validate


@pytest.mark.parametrize("name", sorted(CONTROLS))
def test_a_fake_environment_is_rejected(spec, name):
    sessions = control_sessions(name, spec, Environment(spec).session)
    report = validate(spec, open_session=sessions)
    assert not report.accepted
    assert sum(count.failed for count in report.checks.values()) >= 5
    assert report.mutation is None


def test_a_wrapper_that_changes_nothing_is_accepted(spec):
    # The controls are rejected for what they do, not for being wrappers.
    from toolverse_jax.synthesis.controls import StatelessSession

    class Faithful(StatelessSession):
        def call(self, tool, arguments):
            return self._inner.call(tool, arguments)

    environment = Environment(spec)
    report = validate(spec, open_session=lambda seed: Faithful(environment.session(seed), spec))
    assert report.accepted
