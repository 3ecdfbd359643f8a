"""Words of tool and parameter names: splitting, singular and plural, and what verbs mean."""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACRONYM_PLURAL = re.compile(r"IDs(?![a-z])")
_SEPARATOR = re.compile(r"[^A-Za-z0-9]+")


def split_name(name: str) -> tuple[str, ...]:
    """Split a name in snake, kebab, camel or dotted case into lower-case words."""
    words: list[str] = []
    for part in _SEPARATOR.split(name):
        part = _ACRONYM_PLURAL.sub("Ids", part)
        words += [word.lower() for word in _BOUNDARY.split(part) if word]
    # A name without Latin letters is one word of its own.
    return tuple(words) or (name,)


# --- nouns ------------------------------------------------------------------------------------

_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "analyses": "analysis",
    "indices": "index",
    "vertices": "vertex",
    "criteria": "criterion",
    "series": "series",
    "species": "species",
    "movies": "movie",
    "cookies": "cookie",
    "leaves": "leaf",
    "shelves": "shelf",
    "knives": "knife",
    "lives": "life",
    "aliases": "alias",
    "statuses": "status",
    "buses": "bus",
    "courses": "course",
    "houses": "house",
    "cases": "case",
    "bases": "base",
    "databases": "database",
    "releases": "release",
    "purchases": "purchase",
    "expenses": "expense",
    "licenses": "license",
    "responses": "response",
    "warehouses": "warehouse",
    "caches": "cache",
    "ties": "tie",
    "heroes": "hero",
}
_PLURALS = {single: many for many, single in _IRREGULAR.items()}
_SINGULAR_ENDINGS = ("ss", "us", "is", "ics", "news")
_UNCOUNTED = frozenset(
    {"info", "information", "data", "metadata", "content", "history", "inventory", "stock"}
)


def singular(word: str) -> str:
    """Return the singular of a lower-case noun; a singular is returned unchanged."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(_SINGULAR_ENDINGS):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses", "zzes")):
        return word[:-2]
    return word[:-1]


def plural(word: str) -> str:
    """Return the plural of a lower-case singular noun."""
    if word in _PLURALS:
        return _PLURALS[word]
    if word.endswith(("ch", "sh", "x", "s", "z")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    return word + "s"


def is_plural(word: str) -> bool:
    """Tell whether a lower-case noun has plural form."""
    return singular(word) != word or word in ("series", "species")


# --- verbs ------------------------------------------------------------------------------------

Action = Literal[
    "list", "search", "get", "create", "update", "delete", "transition", "adjust", "aggregate", "unsupported"
]


def _words(action: Action, text: str) -> dict[str, Action]:
    return dict.fromkeys(text.split(), action)


VERBS: dict[str, Action] = {
    **_words("list", "list browse enumerate"),
    **_words("search", "search find query filter lookup discover searcher finder"),
    **_words("get", "get read show view fetch retrieve describe inspect display details detail"),
    **_words(
        "create",
        "create add new register insert book schedule log record post submit place save reserve invite enroll"
        " enrol make send write publish request store upload raise remember plan open hire order",
    ),
    **_words(
        "update",
        "update edit modify change set rename reschedule move assign reassign patch revise replace relabel transfer",
    ),
    **_words("delete", "delete remove destroy drop erase unregister purge forget discard"),
    **_words("aggregate", "count sum total"),
}
"""Verb -> what it does with rows. Verbs of transitions and adjustments are listed apart."""

ADJUSTMENTS: dict[str, int] = {
    **dict.fromkeys(
        "deposit restock increase increment credit topup refill replenish extend raise charge".split(), 1
    ),
    **dict.fromkeys("withdraw decrease decrement debit consume deduct reduce spend use".split(), -1),
}
"""Verb -> sign of the amount it adds to a numeric field."""


@dataclasses.dataclass(frozen=True)
class TransitionVerb:
    """A verb that moves a row from one state to another."""

    target: str
    """State it ends in; empty: back to the first state."""
    kind: Literal["end", "decide", "start", "pause", "back"]
    """`end`: from every state that is not final, into a final one; `decide`: from states no verb leads to;
    `start`: from the first state into work; `pause`: from work; `back`: undoes the verbs in `undoes`."""
    initial: str
    """Name of the first state, where the tools name none."""
    aliases: tuple[str, ...] = ()
    """Other names of the target in enumerations."""
    undoes: tuple[str, ...] = ()


TRANSITIONS: dict[str, TransitionVerb] = {
    "complete": TransitionVerb("completed", "end", "open", ("done", "complete", "finished", "closed")),
    "finish": TransitionVerb("finished", "end", "open", ("done", "completed", "complete", "closed")),
    "close": TransitionVerb("closed", "end", "open", ("done", "completed", "resolved")),
    "resolve": TransitionVerb("resolved", "end", "open", ("closed", "done")),
    "cancel": TransitionVerb("cancelled", "end", "active", ("canceled",)),
    "archive": TransitionVerb("archived", "end", "active", ("inactive",)),
    "retire": TransitionVerb("retired", "end", "active"),
    "return": TransitionVerb("returned", "end", "open"),
    "deliver": TransitionVerb("delivered", "end", "open"),
    "approve": TransitionVerb("approved", "decide", "pending", ("accepted", "confirmed")),
    "accept": TransitionVerb("accepted", "decide", "pending", ("approved",)),
    "confirm": TransitionVerb("confirmed", "decide", "pending", ("approved",)),
    "verify": TransitionVerb("verified", "decide", "pending"),
    "reject": TransitionVerb("rejected", "decide", "pending", ("declined", "denied")),
    "decline": TransitionVerb("declined", "decide", "pending", ("rejected", "denied")),
    "deny": TransitionVerb("denied", "decide", "pending", ("rejected", "declined")),
    "ship": TransitionVerb("shipped", "decide", "open", ("sent",)),
    "dispatch": TransitionVerb("dispatched", "decide", "open", ("sent", "shipped")),
    "start": TransitionVerb(
        "started", "start", "planned", ("running", "active", "in_progress", "inprogress")
    ),
    "activate": TransitionVerb("active", "start", "inactive", ("enabled",)),
    "enable": TransitionVerb("enabled", "start", "disabled", ("active",)),
    "publish": TransitionVerb("published", "start", "draft", ("live",)),
    "pause": TransitionVerb("paused", "pause", "running", ("on_hold", "suspended")),
    "suspend": TransitionVerb("suspended", "pause", "active", ("paused", "inactive")),
    "stop": TransitionVerb("stopped", "pause", "running", ("ended",)),
    "disable": TransitionVerb("disabled", "pause", "enabled", ("inactive",)),
    "deactivate": TransitionVerb("inactive", "pause", "active", ("disabled",)),
    "unpublish": TransitionVerb("draft", "pause", "published", ("unpublished",)),
    "lock": TransitionVerb("locked", "pause", "unlocked"),
    "block": TransitionVerb("blocked", "pause", "active"),
    "resume": TransitionVerb("", "back", "running", undoes=("pause", "suspend", "stop")),
    "unpause": TransitionVerb("", "back", "running", undoes=("pause",)),
    "reopen": TransitionVerb("", "back", "open", undoes=("close", "complete", "finish", "resolve", "cancel")),
    "restore": TransitionVerb("", "back", "active", undoes=("archive", "cancel", "retire")),
    "unarchive": TransitionVerb("", "back", "active", undoes=("archive",)),
    "unlock": TransitionVerb("", "back", "unlocked", undoes=("lock",)),
    "unblock": TransitionVerb("", "back", "active", undoes=("block",)),
}

FIRST_STATES: dict[str, str] = {
    "book": "booked",
    "reserve": "booked",
    "schedule": "scheduled",
    "plan": "scheduled",
    "request": "requested",
    "submit": "submitted",
}
"""State in which the creating verb leaves a row, where the tools name none."""

UNSUPPORTED: dict[str, str] = {
    **dict.fromkeys(
        "click tap swipe scroll hover navigate screenshot press drag zoom jump look fly type fill select capture"
        " render visualize play".split(),
        "user_interface",
    ),
    **dict.fromkeys(
        "run execute exec eval evaluate invoke compile build test deploy install debug scan shell launch ping"
        " restart kill terminate connect disconnect sync call init initialize setup authenticate login"
        " logout".split(),
        "code_execution",
    ),
    **dict.fromkeys(
        "generate think summarize summarise translate analyze analyse explain suggest recommend predict reason"
        " brainstorm extract classify answer ask chat compose imagine detect rewrite".split(),
        "generation",
    ),
    **dict.fromkeys(
        "calculate compute convert encode decode encrypt decrypt hash validate parse format round multiply divide"
        " subtract compare measure simulate estimate solve check random".split(),
        "computation",
    ),
    **dict.fromkeys("scrape crawl download import export extract_url".split(), "external_content"),
}
"""Verb -> why no tool with this verb can be simulated by rows."""

EXTERNAL_NOUNS = frozenset(
    "web internet google bing wikipedia duckduckgo news website webpage url html page_content transcript".split()
)
"""Nouns whose content comes from outside: text of the world that no table holds."""

PREPOSITIONS = frozenset(
    "by of for in from to with on at using as into via per within between during".split()
)

DETAIL_NOUNS = frozenset("detail details info information profile record data metadata".split())
"""Nouns that add nothing to the noun before them: `task details` is the task."""

HARMLESS_MODIFIERS = frozenset(
    "all a an the my own new single existing available every full one list".split()
)
"""Words before a noun that do not change which rows are meant."""

STATISTICS_NOUNS = frozenset("statistics stats summary overview count total totals".split())
