"""Line and interval charts as inline SVG, coloured by the page's own CSS variables.

The drawings are 400 units wide so that their text stays legible on a phone, where a unit is a little
less than a pixel, and never grows coarse in a column of a wide page.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from html import escape

_WIDTH, _HEIGHT = 400, 232
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 10, 10, 40
_COLOURS = 7
_MOST_POINTS = 200
"""A longer line is drawn through the means of equal stretches of it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """One line: points in order of x."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
    """One row of an interval chart: a mean and its confidence bounds."""

    group: str
    """Heading; consecutive rows of one group stand under it."""
    name: str
    """Entry of the legend; rows of one name share their colour."""
    mean: float
    low: float
    high: float


def moving_average(values: Sequence[float], window: int) -> list[float]:
    """Return the trailing mean over at most `window` values."""
    out = []
    for end in range(1, len(values) + 1):
        tail = values[max(0, end - window) : end]
        out.append(sum(tail) / len(tail))
    return out


def line_chart(
    series: Sequence[Series], *, title: str, x_label: str, smooth: int = 5, first_colour: int = 1
) -> str:
    """Draw raw values as dots and their moving average as a line.

    Args:
        series: lines on common axes; y runs from 0, or from the least value if that is negative.
        title: what the chart shows, for screen readers.
        x_label: name of the x axis; its values are whole numbers.
        smooth: values of the moving average; 1 draws a line through the dots.
        first_colour: number of the page's series colour that the first line has.
    """
    ys = [value for line in series for value in line.y]
    xs = [value for line in series for value in line.x]
    y_ticks = axis_ticks(min([0.0, *ys]), max(ys, default=1.0))
    x_low, x_high = min(xs, default=0.0), max(xs, default=1.0)
    across = _Scale(x_low, max(x_high, x_low + 1), _LEFT + 6, _WIDTH - _RIGHT - 6)
    up = _Scale(y_ticks[0], y_ticks[-1], _HEIGHT - _BOTTOM, _TOP)
    x_ticks = _inner_ticks(x_low, x_high)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">']
    parts += _y_axis(up, y_ticks)
    parts += _x_axis(across, x_ticks, x_label)
    for index, line in enumerate(series):
        parts += _line(line, _colour(first_colour + index), across, up, smooth)
    legend = _legend((line.name, _colour(first_colour + index)) for index, line in enumerate(series))
    return f'<figure class="chart">{"".join(parts)}</svg>{legend}</figure>'


def interval_chart(rows: Sequence[Interval], *, title: str) -> str:
    """Draw means with their confidence intervals on a common axis from 0, grouped under headings."""
    ticks = axis_ticks(min([0.0, *(row.low for row in rows)]), max((row.high for row in rows), default=1.0))
    across = _Scale(ticks[0], ticks[-1], 12, _WIDTH - 58)
    names = list(dict.fromkeys(row.name for row in rows))
    body: list[str] = []
    y, group = 0, None
    for row in rows:
        if row.group != group:
            y += 20 if group is None else 32
            body.append(f'<text x="6" y="{y}" class="label">{escape(row.group)}</text>')
            group = row.group
        y += 20
        body += _interval(row, _colour(names.index(row.name) + 1), across, y)
    bottom = y + 18
    grid = []
    for tick in ticks:
        x = across(tick)
        grid.append(f'<line x1="{x:.1f}" y1="4" x2="{x:.1f}" y2="{bottom}" class="grid"/>')
        grid.append(
            f'<text x="{x:.1f}" y="{bottom + 15}" class="tick" text-anchor="middle">{_figure(tick)}</text>'
        )
    legend = _legend((name, _colour(index + 1)) for index, name in enumerate(names))
    return (
        f'<figure class="chart"><svg viewBox="0 0 {_WIDTH} {bottom + 22}" role="img" aria-label="{escape(title)}">'
        f"{''.join(grid)}{''.join(body)}</svg>{legend}</figure>"
    )


def axis_ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """Return three to seven evenly spaced round numbers that enclose `[low, high]`.

    Args:
        low: least value to show.
        high: greatest value to show.
        whole: only whole numbers.
    """
    span = (high - low) or abs(high) or 1.0
    rough = span / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    if whole:
        step = max(1.0, float(math.ceil(step)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 12) for number in range(first, max(last, first + 1) + 1)]


def _inner_ticks(low: float, high: float) -> list[float]:
    """Return the first value and the whole round numbers that do not crowd it."""
    ticks = axis_ticks(low, high, whole=True)
    gap = (ticks[1] - ticks[0]) / 2
    return [low, *(tick for tick in ticks if low + gap <= tick <= high)]


@dataclasses.dataclass(frozen=True)
class _Scale:
    """Places values of one axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _line(line: Series, colour: str, across: _Scale, up: _Scale, smooth: int) -> Iterator[str]:
    averaged = moving_average(line.y, smooth)
    for x, y in _thinned(line.x, line.y):
        yield (
            f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="{3 if smooth == 1 else 1.8}" fill="{colour}" '
            f'opacity="{1 if smooth == 1 else 0.4}"><title>{escape(line.name)}, {x:g}: {_figure(y)}</title></circle>'
        )
    points = " L".join(f"{across(x):.1f} {up(y):.1f}" for x, y in _thinned(line.x, averaged))
    if points:
        yield f'<path d="M{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round" stroke-linecap="round"/>'


def _thinned(xs: Sequence[float], ys: Sequence[float]) -> Iterator[tuple[float, float]]:
    stretch = -(-len(xs) // _MOST_POINTS) if xs else 1
    for start in range(0, len(xs), stretch):
        x, y = xs[start : start + stretch], ys[start : start + stretch]
        yield sum(x) / len(x), sum(y) / len(y)


def _interval(row: Interval, colour: str, across: _Scale, y: int) -> Iterator[str]:
    low, mean, high = across(row.low), across(row.mean), across(row.high)
    said = f"{row.group}, {row.name}: {_figure(row.mean)} [{_figure(row.low)}, {_figure(row.high)}]"
    yield (
        f"<g><title>{escape(said)}</title>"
        f'<line x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}" stroke="{colour}" stroke-width="5" stroke-linecap="round" opacity=".4"/>'
        f'<circle cx="{mean:.1f}" cy="{y}" r="5.5" fill="{colour}"/></g>'
    )
    yield f'<text x="{_WIDTH - 6}" y="{y + 4}" class="value" text-anchor="end">{row.mean:.3f}</text>'


def _y_axis(up: _Scale, ticks: Sequence[float]) -> Iterator[str]:
    for tick in ticks:
        y = up(tick)
        kind = "zero" if tick == 0 else "grid"
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="{kind}"/>'
        yield f'<text x="{_LEFT - 7}" y="{y + 4:.1f}" class="tick" text-anchor="end">{_figure(tick)}</text>'


def _x_axis(across: _Scale, ticks: Sequence[float], label: str) -> Iterator[str]:
    for tick in ticks:
        yield (
            f'<text x="{across(tick):.1f}" y="{_HEIGHT - _BOTTOM + 17}" class="tick" '
            f'text-anchor="middle">{_figure(tick)}</text>'
        )
    yield (
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 5}" class="tick" '
        f'text-anchor="middle">{escape(label)}</text>'
    )


def _legend(entries: Iterator[tuple[str, str]]) -> str:
    """Return what the colours mean; a single line needs no legend, its heading names it."""
    named = list(entries)
    if len(named) < 2:
        return ""
    spans = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in named
    )
    return f'<figcaption class="legend">{spans}</figcaption>'


def _colour(number: int) -> str:
    return f"var(--series-{(number - 1) % _COLOURS + 1})"


def _figure(value: float) -> str:
    """Return a number in at most five significant digits, with a short exponent and a true minus."""
    text = f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    return text.replace("e-0", "e-").replace("-", "\u2212")
