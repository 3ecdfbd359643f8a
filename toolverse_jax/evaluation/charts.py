"""Line and interval charts as inline SVG, coloured by the page's own CSS variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT = 560, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 16, 14, 34


@dataclasses.dataclass(frozen=True, kw_only=True)
class Series:
    """One line: points in order of x."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interval:
    """One row of an interval chart: a mean and its confidence bounds."""

    label: str
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


def line_chart(series: Sequence[Series], *, title: str, x_label: str, smooth: int = 5) -> str:
    """Draw raw values as dots and their moving average as a line; y runs over [0, top]."""
    points = [value for line in series for value in line.y]
    top = _round_up(max(points, default=1.0))
    xs = [value for line in series for value in line.x]
    x_low, x_high = min(xs, default=0.0), max(max(xs, default=1.0), min(xs, default=0.0) + 1)
    parts = [_frame(title), _y_axis(top), _x_axis(x_low, x_high, x_label)]
    for index, line in enumerate(series):
        colour = f"var(--series-{index % 6 + 1})"
        place = [(_x(x, x_low, x_high), _y(y, top)) for x, y in zip(line.x, line.y, strict=True)]
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="1.8" fill="{colour}" opacity=".35"/>' for px, py in place
        ]
        averaged = moving_average(line.y, smooth)
        path = " ".join(
            f"{'M' if i == 0 else 'L'}{_x(x, x_low, x_high):.1f} {_y(y, top):.1f}"
            for i, (x, y) in enumerate(zip(line.x, averaged, strict=True))
        )
        parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
        )
    parts.append("</svg>")
    legend = "".join(
        f'<span><i style="background:var(--series-{index % 6 + 1})"></i>{escape(line.name)}</span>'
        for index, line in enumerate(series)
    )
    return f'<figure class="chart">{"".join(parts)}<figcaption class="legend">{legend}</figcaption></figure>'


def interval_chart(rows: Sequence[Interval], *, title: str) -> str:
    """Draw means with their confidence intervals on a common [0, top] axis, one row each."""
    top = _round_up(max((row.high for row in rows), default=1.0))
    height = 30 + 34 * len(rows)
    label_width = 200

    def x_of(value: float) -> float:
        return label_width + (max(value, 0.0) / top) * (_WIDTH - label_width - 60)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">']
    for tick in range(5):
        x = x_of(top * tick / 4)
        parts.append(f'<line x1="{x:.1f}" y1="8" x2="{x:.1f}" y2="{height - 20}" class="grid"/>')
        parts.append(
            f'<text x="{x:.1f}" y="{height - 6}" class="tick" text-anchor="middle">{top * tick / 4:.2f}</text>'
        )
    for index, row in enumerate(rows):
        y = 26 + 34 * index
        colour = f"var(--series-{index % 2 + 1})"
        parts.append(
            f'<text x="{label_width - 10}" y="{y + 4}" class="label" text-anchor="end">{escape(row.label)}</text>'
        )
        parts.append(
            f'<line x1="{x_of(row.low):.1f}" y1="{y}" x2="{x_of(row.high):.1f}" y2="{y}" stroke="{colour}" stroke-width="3" stroke-linecap="round" opacity=".45"/>'
        )
        parts.append(f'<circle cx="{x_of(row.mean):.1f}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{x_of(row.high) + 8:.1f}" y="{y + 4}" class="value">{row.mean:.2f}</text>')
    parts.append("</svg>")
    return f'<figure class="chart">{"".join(parts)}</figure>'


def _frame(title: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'


def _y_axis(top: float) -> str:
    parts = []
    for tick in range(5):
        value = top * tick / 4
        y = _y(value, top)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" class="grid"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" class="tick" text-anchor="end">{value:.2f}</text>'
        )
    return "".join(parts)


def _x_axis(low: float, high: float, label: str) -> str:
    parts = []
    for tick in range(5):
        value = low + (high - low) * tick / 4
        parts.append(
            f'<text x="{_x(value, low, high):.1f}" y="{_HEIGHT - _BOTTOM + 16}" class="tick" text-anchor="middle">{value:.0f}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 4}" class="tick" text-anchor="middle">{escape(label)}</text>'
    )
    return "".join(parts)


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, top: float) -> float:
    return _TOP + (1 - value / top) * (_HEIGHT - _TOP - _BOTTOM)


def _round_up(value: float) -> float:
    """Return the smallest pleasant axis end that holds the value."""
    for end in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0):
        if value <= end:
            return end
    return float(value)
