"""Domain packs: invented plausible values by field name, and by the noun of an entity.

Used where a toolset gives no examples of its own. Nothing here names real people, firms or works.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolverse_jax.environment.spec import (
    Choices,
    Compose,
    DateRange,
    FieldSpec,
    FieldType,
    Generator,
    NumberRange,
    ValueKind,
)
from toolverse_jax.synthesis.lexicon import split_name

_BRIGHT = "Amber Birch Copper Distant Early Fern Golden Harbour Ivory Juniper Lantern Meadow Northern Orchard".split()
_PLACES = "Harbour Mill Orchard Lantern Meadow Quarry Willow Station Bridge Garden".split()
_VERBS = "Draft Review Update Prepare Plan Check Order Repair Collect Publish".split()
_MATTERS = "budget report contract brochure schedule invoice website inventory newsletter manual".split()
_REMARKS = (
    "please check again",
    "waiting for an answer",
    "looks good so far",
    "needs a second look",
    "agreed on the phone",
    "send a copy later",
    "bring the keys",
    "ask before changing",
    "moved to next week",
    "done as discussed",
)


def _two(first: Sequence[str], second: str | Sequence[str]) -> Compose:
    return Compose(parts=(tuple(first), tuple(second.split() if isinstance(second, str) else second)))


_TITLES: dict[str, Generator] = {
    "task": _two(_VERBS, _MATTERS),
    "todo": _two(_VERBS, _MATTERS),
    "reminder": _two(_VERBS, _MATTERS),
    "issue": _two(
        ["Broken", "Slow", "Missing", "Blank", "Wrong", "Stuck"], "search login export chart footer upload"
    ),
    "ticket": _two(
        ["Broken", "Slow", "Missing", "Blank", "Wrong", "Stuck"], "search login export chart footer upload"
    ),
    "pull_request": _two(
        ["Fix", "Rework", "Add", "Remove", "Tidy"], "parser cache login tests footer exporter"
    ),
    "project": _two(_BRIGHT, "Launch Redesign Survey Archive Pilot Renewal"),
    "product": _two(
        ["oak", "linen", "brass", "clay", "cork", "wool"], "bowl lamp chair basket clock blanket"
    ),
    "item": _two(["oak", "linen", "brass", "clay", "cork", "wool"], "bowl lamp chair basket clock blanket"),
    "company": ValueKind(value="company"),
    "organization": ValueKind(value="company"),
    "event": _two(
        ["Spring", "Summer", "Autumn", "Winter", "Town", "Garden"], "Fair Concert Workshop Market Dinner Walk"
    ),
    "meeting": _two(["Weekly", "Budget", "Design", "Staff", "Planning", "Review"], "call meeting session"),
    "note": _two(["Ideas", "Notes", "Questions", "Plans"], "Garden Kitchen Journey Budget Workshop Library"),
    "document": _two(_BRIGHT, "Handbook Proposal Summary Checklist Charter"),
    "page": _two(_BRIGHT, "Handbook Guide Overview Checklist Roadmap"),
    "article": _two(_BRIGHT, "Findings Letters Report Essay Chronicle"),
    "paper": _two(_BRIGHT, "Networks Surfaces Signals Estimates Lattices"),
    "course": _two(
        ["Basic", "Applied", "Modern", "Advanced"], "Botany Drawing Statistics Carpentry Astronomy Music"
    ),
    "book": _two(_BRIGHT, "Stairs Letters Tide Clockmaker Voyage Garden"),
    "playlist": _two(["Rainy", "Slow", "Bright", "Evening", "Early"], "Morning Drive Kitchen Sunday Study"),
    "track": _two(_BRIGHT, "Waltz Echo Lullaby Avenue Parade"),
    "album": _two(_BRIGHT, "Rooms Weather Postcards Circles"),
    "room": _two(_BRIGHT, "Room"),
    "team": _two(_BRIGHT, "Team Crew Circle"),
    "repository": Compose(
        parts=(("amber", "birch", "copper", "fern", "juniper"), ("api", "site", "tools", "docs", "worker")),
        separator="-",
    ),
    "workspace": Compose(
        parts=(("amber", "birch", "copper", "fern", "juniper"), ("labs", "works", "studio", "group")),
        separator="-",
    ),
    "user": ValueKind(value="person"),
    "person": ValueKind(value="person"),
    "contact": ValueKind(value="person"),
    "customer": ValueKind(value="person"),
    "member": ValueKind(value="person"),
    "author": ValueKind(value="person"),
    "employee": ValueKind(value="person"),
    "student": ValueKind(value="person"),
    "payee": ValueKind(value="person"),
    "agent": ValueKind(value="person"),
    "player": ValueKind(value="username"),
    "city": ValueKind(value="city"),
    "country": ValueKind(value="country"),
}
"""Singular noun of an entity -> how such a thing is called."""

_VALUES: dict[str, Generator] = {
    "email": ValueKind(value="email"),
    "phone": ValueKind(value="phone"),
    "city": ValueKind(value="city"),
    "address": ValueKind(value="address"),
    "country": ValueKind(value="country"),
    "url": ValueKind(value="url"),
    "link": ValueKind(value="url"),
    "website": ValueKind(value="url"),
    "language": ValueKind(value="language"),
    "currency": ValueKind(value="currency"),
    "colour": ValueKind(value="colour"),
    "color": ValueKind(value="colour"),
    "username": ValueKind(value="username"),
    "company": ValueKind(value="company"),
    "organization": ValueKind(value="company"),
    "path": ValueKind(value="path"),
    "code": ValueKind(value="code"),
    "sku": ValueKind(value="code"),
    "isbn": ValueKind(value="code"),
    "serial": ValueKind(value="code"),
    "identifier": ValueKind(value="code"),
    "job": ValueKind(value="job"),
    "tag": ValueKind(value="tag"),
    "time": ValueKind(value="time"),
    "latitude": ValueKind(value="latitude"),
    "longitude": ValueKind(value="longitude"),
    **dict.fromkeys(
        "owner author assignee customer guest member recipient sender client patient student teacher reporter"
        " contact creator reviewer organizer".split(),
        ValueKind(value="person"),
    ),
    **dict.fromkeys(
        "description notes note content body text message comment summary remark remarks memo reason details".split(),
        Choices(values=_REMARKS),
    ),
    **dict.fromkeys("location place venue".split(), _two(_PLACES, "Hall House Square Court")),
    "priority": Choices(values=("low", "medium", "high")),
    "severity": Choices(values=("low", "medium", "high")),
    "difficulty": Choices(values=("easy", "medium", "hard")),
    "category": Choices(values=("home", "office", "garden", "travel")),
    "type": Choices(values=("standard", "special", "trial")),
    "role": Choices(values=("viewer", "editor", "admin")),
    "genre": Choices(values=("folk", "jazz", "choral", "electronic")),
    "topic": _two(_BRIGHT, "Methods Questions Results"),
    "branch": Compose(
        parts=(("fix", "feature", "chore"), ("login", "cache", "footer", "parser")), separator="/"
    ),
    "version": Choices(values=("1.0", "1.1", "1.4", "2.0", "2.3")),
    "schedule": Choices(values=("0 7 * * *", "30 18 * * 1", "0 9 1 * *", "15 12 * * 5")),
    "command": Choices(values=("backup.sh", "report.sh", "cleanup.sh", "sync.sh")),
    "prompt": Choices(
        values=("Write a short greeting", "List three ideas", "Name the next step", "Draft a reply")
    ),
    "template": Choices(
        values=("Dear {name}", "Summary of {topic}", "Steps for {goal}", "Notes on {subject}")
    ),
}
"""Last word of a field name -> values."""

_NUMBERS: dict[str, tuple[float, float, float]] = {
    "price": (5, 95, 5),
    "cost": (5, 95, 5),
    "amount": (10, 200, 10),
    "balance": (100, 900, 50),
    "budget": (500, 5000, 500),
    "stock": (5, 40, 5),
    "quantity": (1, 9, 1),
    "count": (1, 20, 1),
    "minutes": (10, 60, 5),
    "duration": (10, 60, 5),
    "hours": (1, 8, 1),
    "days": (1, 14, 1),
    "nights": (1, 7, 1),
    "rating": (1, 5, 1),
    "score": (10, 100, 5),
    "year": (2012, 2030, 1),
    "age": (18, 80, 1),
    "priority": (1, 5, 1),
    "position": (1, 9, 1),
    "capacity": (2, 40, 2),
    "weight": (1, 25, 1),
    "progress": (0, 100, 10),
}
"""Last word of a numeric field name -> (low, high, step)."""

_PAST = frozenset("created updated modified published joined birth founded released started opened".split())
DATE_WORDS = frozenset("date day deadline due pickup arrival departure opening birthday".split())


def title_generator(noun: tuple[str, ...]) -> Generator | None:
    """Return how things of a noun are called, None for nouns no pack knows."""
    return _TITLES.get("_".join(noun)) or _TITLES.get(noun[-1])


def generic_title(noun: tuple[str, ...]) -> Generator:
    """Return invented names for a noun no pack knows: `Amber widget`."""
    return _two(_BRIGHT, [" ".join(noun)])


def value_generator(name: str, kind: str) -> Generator | None:
    """Return plausible values for a field by the words of its name, None where no pack knows it.

    Args:
        name: Name of the field.
        kind: JSON type of the field.
    """
    words = split_name(name)
    if kind == "boolean":
        return Choices(values=(True, False))
    for word in reversed(words):
        word = word if word in _VALUES or word in _NUMBERS else word.removesuffix("s")
        if kind in ("integer", "number"):
            if word in ("latitude", "longitude"):
                return ValueKind(value=word)
            if word in _NUMBERS:
                low, high, step = _NUMBERS[word]
                return NumberRange(low=low, high=high, step=step)
        elif word in _VALUES:
            return _VALUES[word]
    return None


def number_generator(schema: dict[str, Any]) -> Generator:
    """Return round numbers inside the bounds of a schema."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", low + 20)), low + 20)
    return NumberRange(low=float(low), high=float(max(low, high)), step=1)


def date_generator(name: str) -> DateRange:
    """Return dates near the epoch: past ones for names such as `created_at`."""
    past = bool(set(split_name(name)) & _PAST)
    return DateRange(low_days=-60, high_days=-2) if past else DateRange(low_days=2, high_days=45)


def is_date_name(name: str, description: str) -> bool:
    """Tell whether a string parameter holds a day, by its name and its description."""
    words = set(split_name(name))
    text = description.lower()
    return bool(words & DATE_WORDS) and ("yyyy-mm-dd" in text or "iso" in text) and "time" not in text


# --- profiles ---------------------------------------------------------------------------------


def _field(name: str, kind: FieldType = "string", generator: Generator | None = None) -> FieldSpec:
    draw = generator or (date_generator(name) if kind == "date" else value_generator(name, kind))
    return FieldSpec(name=name, type=kind, generator=draw, nullable=True)


_DAY = DateRange(low_days=-400, high_days=-2)
_PROFILES: dict[str, tuple[FieldSpec, ...]] = {
    "project": (_field("status", "string", Choices(values=("active", "paused", "finished"))), _field("description")),
    "task": (_field("priority"), _field("description")),
    "issue": (_field("priority"), _field("assignee")),
    "ticket": (_field("priority"), _field("assignee")),
    "user": (_field("email"), _field("city")),
    "person": (_field("email"), _field("city")),
    "contact": (_field("phone"), _field("email")),
    "customer": (_field("email"), _field("city")),
    "member": (_field("email"), _field("role")),
    "author": (_field("affiliation", "string", ValueKind(value="company")), _field("papers", "integer", NumberRange(low=2, high=60))),
    "player": (_field("country"), _field("score", "integer")),
    "team": (_field("city"), _field("members", "integer", NumberRange(low=3, high=12))),
    "paper": (_field("year", "integer"), _field("author"), _field("citations", "integer", NumberRange(low=0, high=300, step=5))),
    "article": (_field("author"), _field("published", "date", _DAY)),
    "document": (_field("author"), _field("updated", "date", _DAY)),
    "page": (_field("author"), _field("updated", "date", _DAY)),
    "book": (_field("author"), _field("year", "integer")),
    "course": (_field("teacher"), _field("code")),
    "module": (_field("position", "integer"),),
    "assignment": (_field("due", "date", DateRange(low_days=3, high_days=40)), _field("points", "integer", NumberRange(low=5, high=50, step=5))),
    "repository": (_field("language", "string", Choices(values=("python", "rust", "go"))), _field("stars", "integer", NumberRange(low=1, high=90))),
    "workspace": (_field("owner"),),
    "space": (_field("owner"), _field("description")),
    "pull_request": (_field("author"), _field("branch")),
    "comment": (_field("author"), _field("text")),
    "message": (_field("sender"), _field("text")),
    "chat": (_field("members", "integer", NumberRange(low=2, high=9)),),
    "channel": (_field("topic"), _field("members", "integer", NumberRange(low=2, high=40))),
    "company": (_field("city"), _field("phone")),
    "product": (_field("price", "number"), _field("stock", "integer")),
    "order": (_field("customer"), _field("total", "number", NumberRange(low=20, high=400, step=10))),
    "invoice": (_field("customer"), _field("total", "number", NumberRange(low=20, high=400, step=10))),
    "event": (_field("date", "date"), _field("location")),
    "room": (_field("capacity", "integer"),),
    "hotel": (_field("city"), _field("rating", "number")),
    "deal": (_field("amount", "number"), _field("owner")),
    "pipeline": (_field("owner"),),
    "stage": (_field("position", "integer"),),
    "deployment": (_field("version"), _field("created", "date", _DAY)),
    "dataset": (_field("owner"), _field("rows", "integer", NumberRange(low=100, high=9000, step=100))),
    "model": (_field("owner"), _field("downloads", "integer", NumberRange(low=10, high=900, step=10))),
    "collection": (_field("owner"), _field("items", "integer", NumberRange(low=3, high=40))),
    "playlist": (_field("owner"), _field("tracks", "integer", NumberRange(low=5, high=60))),
    "track": (_field("artist", "string", ValueKind(value="person")), _field("minutes", "integer", NumberRange(low=2, high=9))),
    "album": (_field("artist", "string", ValueKind(value="person")), _field("year", "integer")),
    "deck": (_field("cards", "integer", NumberRange(low=10, high=90, step=5)),),
    "planet": (_field("climate", "string", Choices(values=("mild", "frozen", "dry"))), _field("moons", "integer", NumberRange(low=0, high=5))),
    "vehicle": (_field("maker", "string", ValueKind(value="company")), _field("crew", "integer", NumberRange(low=1, high=8))),
    "trial": (_field("phase", "string", Choices(values=("1", "2", "3"))), _field("sponsor", "string", ValueKind(value="company"))),
    "flow": (_field("owner"), _field("version")),
    "story": (_field("author"), _field("points", "integer", NumberRange(low=5, high=300, step=5))),
    "post": (_field("author"), _field("text")),
    "video": (_field("author"), _field("minutes", "integer")),
    "note": (_field("text"), _field("updated", "date", _DAY)),
    "game": (_field("genre", "string", Choices(values=("puzzle", "racing", "strategy"))), _field("year", "integer")),
    "problem": (_field("difficulty"), _field("topic")),
    "network": (_field("currency"),),
    "region": (_field("country"),),
    "page_section": (_field("position", "integer"),),
    "conference": (_field("year", "integer"), _field("city")),
}  # fmt: skip
"""Singular noun -> further properties such things usually have."""


def profile(noun: tuple[str, ...]) -> tuple[FieldSpec, ...]:
    """Return properties that things of a noun usually have; empty for nouns no pack knows."""
    return _PROFILES.get("_".join(noun)) or _PROFILES.get(noun[-1]) or ()
