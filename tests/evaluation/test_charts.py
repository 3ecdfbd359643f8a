import xml.etree.ElementTree as ElementTree

import pytest

from toolverse_jax.evaluation.charts import (
    Interval,
    Series,
    axis_ticks,
    interval_chart,
    line_chart,
    moving_average,
)


def _elements(figure: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(figure).iter(tag))


def _texts(figure: str) -> list[str]:
    return [element.text or "" for element in _elements(figure, "text")]


def test_the_moving_average_trails_and_starts_with_what_there_is():
    assert moving_average([1, 3, 5, 7], 2) == [1, 2, 4, 6]


@pytest.mark.parametrize(
    ("low", "high", "whole", "expected"),
    [
        (0, 1, False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 0.47, False, [0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        (0, 24000, False, [0, 5000, 10000, 15000, 20000, 25000]),
        (-0.3, 0.2, False, [-0.3, -0.2, -0.1, 0, 0.1, 0.2]),
        (1, 3, True, [1, 2, 3]),
        (4, 4, True, [4, 5]),
    ],
)
def test_ticks_are_round_numbers_around_the_values(low, high, whole, expected):
    assert axis_ticks(low, high, whole=whole) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (0, 1e-9), (0, 7e8), (3, 3), (-2, -1), (0.999, 1.001), (0, 19)]
)
def test_ticks_always_enclose_the_values_and_stay_few(low, high):
    ticks = axis_ticks(low, high)
    assert ticks[0] <= low and ticks[-1] >= high
    assert 2 <= len(ticks) <= 7


def test_a_line_chart_draws_every_value_and_names_its_lines():
    figure = line_chart(
        [
            Series(name="a < b", x=[1, 2, 3], y=[0.1, 0.2, 0.3]),
            Series(name="other", x=[1, 2, 3], y=[0, 0, 1]),
        ],
        title="Two lines",
        x_label="step",
    )
    assert len(_elements(figure, "circle")) == 6
    assert len(_elements(figure, "path")) == 2
    assert "a &lt; b" in figure and "other" in figure
    assert 'aria-label="Two lines"' in figure


def test_all_points_lie_inside_the_drawing():
    figure = line_chart([Series(name="a", x=[1, 500], y=[-3, 1234])], title="t", x_label="step")
    (svg,) = _elements(figure, "svg")
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for circle in _elements(figure, "circle"):
        assert 0 < float(circle.attrib["cx"]) < width
        assert 0 < float(circle.attrib["cy"]) < height


def test_higher_values_are_drawn_higher_and_later_ones_further_right():
    figure = line_chart([Series(name="a", x=[1, 2], y=[0.2, 0.8])], title="t", x_label="step")
    first, second = _elements(figure, "circle")
    assert float(second.attrib["cx"]) > float(first.attrib["cx"])
    assert float(second.attrib["cy"]) < float(first.attrib["cy"])


def test_the_step_axis_shows_first_and_last_step():
    figure = line_chart([Series(name="a", x=range(1, 31), y=[0.5] * 30)], title="t", x_label="training step")
    assert {"1", "10", "20", "30", "training step"} <= set(_texts(figure))


def test_one_line_has_no_legend():
    assert "legend" not in line_chart([Series(name="a", x=[1], y=[1])], title="t", x_label="step")


def test_a_single_point_at_zero_can_be_drawn():
    figure = line_chart([Series(name="a", x=[7], y=[0])], title="t", x_label="step")
    assert len(_elements(figure, "circle")) == 1


def test_a_long_run_is_thinned_to_a_drawing_of_bounded_size():
    steps = range(1, 20001)
    figure = line_chart([Series(name="a", x=steps, y=[0.5] * 20000)], title="t", x_label="step")
    assert len(_elements(figure, "circle")) <= 200
    assert len(figure) < 60_000


def test_small_values_keep_their_digits_with_a_short_exponent():
    figure = line_chart([Series(name="a", x=[1, 2], y=[2e-6, 4e-6])], title="t", x_label="step")
    assert "4e\u22126" in _texts(figure)


def test_an_interval_chart_shows_mean_and_bounds_under_one_heading_a_group():
    figure = interval_chart(
        [
            Interval(group="Score", name="before", mean=0.25, low=0.125, high=0.375),
            Interval(group="Score", name="after", mean=0.5, low=0.4, high=0.6),
        ],
        title="Means",
    )
    assert _texts(figure).count("Score") == 1
    assert {"0.250", "0.500"} <= set(_texts(figure))
    titles = [element.text for element in _elements(figure, "title")]
    assert titles == ["Score, before: 0.25 [0.125, 0.375]", "Score, after: 0.5 [0.4, 0.6]"]
    assert figure.count("var(--series-1)") and figure.count("var(--series-2)")
