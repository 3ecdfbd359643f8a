"""Reads the imperative sentence of a tool description: verb, object, prepositional phrases, reason.

`Book a stay for a boat at a berth.` becomes the verb `book`, the object `stay` and two phrases,
`for boat` and `at berth`, whose nouns are later replaced by values and referring expressions.
"""

from __future__ import annotations

import dataclasses
import functools
import re

from toolverse_jax.gust.phrases import singular

_PREPOSITIONS = frozenset(
    "about as at by during for from in inside into of on onto over to under with within".split()
)
_DETERMINERS = frozenset(
    "a an the this that its their his her one each every all any some another my your our".split()
)
_LIGHT_ADJECTIVES = frozenset("new single existing given specific open particular certain".split())
_TAIL = re.compile(r"\s*(?:,|;|\(|\b(?:that|which|who|when|once|if|where|whose|so|using|including)\b).*$")
_REASON = re.compile(
    r"\b(?:that|which|who) ((?:is|are|was|were|has|have) .+)$|\bwhen (?:the |an? )?(\w+) ((?:is|are|was|were|has|have) .+)$"
)
_BARE_LINKS = re.compile(r"(?:ed|en)$")
_LINK_WORDS = frozenset("due held kept sent lent bought sold made".split())

VERBS: dict[str, tuple[str, ...]] = {
    "create": tuple(
        "add create register book open plan lend put make start schedule write place post log record issue "
        "reserve insert set submit send enter upload save hire raise order assign file enrol".split()
    ),
    "update": tuple(
        "change move update edit set rename reschedule modify adjust replace revise correct".split()
    ),
    "delete": tuple("delete remove cancel drop discard erase clear".split()),
    "transition": tuple(
        "cancel close complete confirm approve archive open reopen start stop finish mark resolve reject publish "
        "activate deactivate enable disable pause resume end return check release accept decline ship pay lock "
        "unlock restore scrap lend take retire suspend sign void".split()
    ),
    "adjust": tuple(
        "add put increase decrease raise lower reduce restock withdraw deposit take remove top refill charge".split()
    ),
}
"""Verbs that a person uses when asking for an operation, by verb class."""

DEFAULT_VERBS = {
    "create": "add",
    "update": "change",
    "delete": "delete",
    "transition": "update",
    "adjust": "change",
}


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A noun phrase of a description and the words that link it to what stands before."""

    link: str
    """Preposition, perhaps after a participle (`booked at`); empty for the object."""
    noun: str
    """Words of the noun phrase without its determiner."""
    definite: bool = False

    @property
    def preposition(self) -> str:
        """The link without its participle."""
        return self.link.rpartition(" ")[2]

    @property
    def head(self) -> str:
        """Last word of the noun, in the singular."""
        return singular(self.noun).rpartition(" ")[2].lower()


@dataclasses.dataclass(frozen=True)
class Skeleton:
    """The parsed first sentence of a tool description."""

    verb: str
    """Imperative in lower case; empty where the description does not begin with one."""
    object: Phrase | None
    phrases: tuple[Phrase, ...] = ()
    reason: str = ""
    """What a trailing clause says of the object: `was picked up`; with a subject of its own, `the object is back`."""


@functools.lru_cache(maxsize=4096)
def parse_description(description: str) -> Skeleton:
    """Parse the first sentence of a description; parts that cannot be read are left out."""
    first = re.split(r"(?<=[a-z0-9)])\.(?:\s|$)|\n", description.strip(), maxsplit=1)[0].strip(" .")
    words = first.split()
    if len(words) < 2 or not words[0].isalpha():
        return Skeleton("", None)
    verb = words[0].lower()
    rest = " ".join(words[1:])
    reason = ""
    match = _REASON.search(rest)
    if match:
        reason = match.group(1) or f"the {match.group(2)} {match.group(3)}"
    rest = _TAIL.sub("", rest).strip()
    chunks = _chunks(rest.split())
    if not chunks or chunks[0].link or not chunks[0].noun:
        return Skeleton(verb, None, tuple(c for c in chunks if c.link and c.noun), reason)
    return Skeleton(verb, chunks[0], tuple(c for c in chunks[1:] if c.noun), reason)


def _chunks(words: list[str]) -> list[Phrase]:
    """Cut words at prepositions; `of` too, so that `the litres of a plan` gives two phrases."""
    chunks: list[Phrase] = []
    link: list[str] = []
    noun: list[str] = []
    for index, word in enumerate(words):
        lower = word.lower()
        if lower in _PREPOSITIONS and index + 1 < len(words):
            carried: list[str] = []
            # "stays booked at": the participle belongs to the link, unless it is all there is.
            named = [w for w in noun if w.lower() not in _DETERMINERS | _LIGHT_ADJECTIVES]
            if len(named) > 1 and (_BARE_LINKS.search(noun[-1]) or noun[-1] in _LINK_WORDS):
                carried = [noun.pop()]
            chunks.append(_phrase(link, noun))
            link, noun = [*carried, lower], []
        else:
            noun.append(word)
    chunks.append(_phrase(link, noun))
    return [chunk for chunk in chunks if chunk.noun or chunk.link]


def _phrase(link: list[str], noun: list[str]) -> Phrase:
    definite = bool(noun) and noun[0].lower() in ("the", "its", "their")
    words = list(noun)
    while words and words[0].lower() in _DETERMINERS | _LIGHT_ADJECTIVES:
        words.pop(0)
    return Phrase(" ".join(link), " ".join(words), definite)


def spoken_verb(skeleton: Skeleton, tool: str, verb_class: str) -> str:
    """Return the verb a person would use: that of the description, else of the tool name, else a plain one."""
    known = VERBS.get(verb_class, ())
    for word in (skeleton.verb, *re.split(r"[^A-Za-z]+", tool.lower())):
        for form in (word, singular(word)):
            if form in known:
                return form
    return DEFAULT_VERBS.get(verb_class, "")
