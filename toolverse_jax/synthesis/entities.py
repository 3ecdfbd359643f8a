"""Reads tool names: what each tool does, to which kind of thing, and which kinds of things there are."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from toolverse_jax.synthesis.lexicon import (
    ADJUSTMENTS,
    DETAIL_NOUNS,
    EXTERNAL_NOUNS,
    HARMLESS_MODIFIERS,
    PREPOSITIONS,
    STATISTICS_NOUNS,
    TRANSITIONS,
    UNSUPPORTED,
    VERBS,
    is_plural,
    singular,
    split_name,
)
from toolverse_jax.synthesis.normalise import NormalisedTool

Phrase = tuple[str, ...]
"""A noun as lower-case singular words, such as `("pull", "request")`."""

_JUNK_WORDS = frozenset({"tool", "mcp", "api"})
_IDENTIFIER_WORDS = frozenset({"id", "ids", "uuid", "guid"})
_ALTERNATIVES = frozenset({"or", "key", "name", "slug"})
_WEAK_IDENTIFIER_WORDS = frozenset({"key", "slug"})
_PERSON_NOUNS = ("user", "person", "member", "contact", "employee", "people")
_PERSON_ROLES = frozenset(
    "owner assignee requester author reporter creator sender recipient manager reviewer participant".split()
)
_MARKED_AS = {
    "complete": "complete",
    "completed": "complete",
    "done": "complete",
    "finished": "finish",
    "closed": "close",
    "resolved": "resolve",
}
_COMMON_SHARE = 0.75
_SMALLEST_SET_WITH_PREFIX = 4


@dataclasses.dataclass(frozen=True)
class Reading:
    """What the name of a tool says."""

    tool: NormalisedTool
    verb: str
    action: str
    """`list`, `search`, `get`, `create`, `update`, `delete`, `transition`, `adjust`, `aggregate`,
    `unsupported`, or empty where no verb was found."""
    head: Phrase
    """The thing it is about."""
    plural: bool
    modifiers: Phrase = ()
    """Words before the head that choose among rows: `recent`, `active`."""
    attribute: str = ""
    """Property of the head that the name singles out: `status` in `update_task_status`."""
    reason: str = ""
    """Why an unsupported tool is unsupported."""


def read_tools(tools: Sequence[NormalisedTool]) -> list[Reading]:
    """Read the names of all tools of a set."""
    names, scope = _strip_common([split_name(tool.name) for tool in tools])
    return [_read(tool, words, scope) for tool, words in zip(tools, names, strict=True)]


def _strip_common(names: list[Phrase]) -> tuple[list[Phrase], Phrase]:
    """Remove words that most names share at either end; return them apart, they may be the subject."""
    names = [_strip_junk(words) for words in names]
    scope: list[str] = []
    if len(names) < _SMALLEST_SET_WITH_PREFIX:
        return names, ()
    while len(scope) < 3:
        word, count = Counter(words[0] for words in names if words).most_common(1)[0]
        if count < _COMMON_SHARE * len(names) or _is_verb(word):
            break
        if not all(len(words) > 1 for words in names if words and words[0] == word):
            break
        names = [words[1:] if words[0] == word else words for words in names]
        scope.append(word)
    return names, tuple(scope)


def _strip_junk(words: Phrase) -> Phrase:
    while len(words) > 1 and words[-1] in _JUNK_WORDS:
        words = words[:-1]
    while len(words) > 1 and words[0] in _JUNK_WORDS:
        words = words[1:]
    return words


def _is_verb(word: str) -> bool:
    return word in VERBS or word in TRANSITIONS or word in ADJUSTMENTS or word in UNSUPPORTED


def _read(tool: NormalisedTool, words: Phrase, scope: Phrase) -> Reading:
    verb, rest = _split_verb(words)
    action = _action(verb)
    reason = UNSUPPORTED.get(verb, "") if action == "unsupported" else ""
    if verb == "mark" and rest and rest[-1] in _MARKED_AS:
        verb, action = _MARKED_AS[rest[-1]], "transition"
        rest = tuple(word for word in rest[:-1] if word != "as")
    head, modifiers = _head(rest)
    attribute = ""
    if action in ("get", "update") and len(head) > 1 and head[-1] in ("status", "state"):
        attribute, head = head[-1], head[:-1]
    statistics = head and head[-1] in STATISTICS_NOUNS
    if statistics and action in ("get", "list", ""):
        action, head = "aggregate", head[:-1]
    many = (bool(head) and is_plural(head[-1])) or "all" in rest[:1]
    if not head and scope and not statistics:
        head, many = scope, is_plural(scope[-1])
    if not reason and any(word in EXTERNAL_NOUNS for word in head):
        action, reason = "unsupported", "external_content"
    return Reading(
        tool=tool,
        verb=verb,
        action=action,
        head=(*head[:-1], singular(head[-1])) if head else (),
        plural=many,
        modifiers=modifiers,
        attribute=attribute,
        reason=reason,
    )


def _split_verb(words: Phrase) -> tuple[str, Phrase]:
    """Return the verb, looked for first in front, then at the end, then inside."""
    if not words:
        return "", ()
    first, last = words[0], words[-1]
    if first == "mark":
        return "mark", words[1:]
    # Words such as `order` are verbs only where no clearer verb stands at the end: `order_create`.
    if _is_verb(first) and not (
        len(words) == 2
        and VERBS.get(last) in ("create", "list", "get", "delete", "update")
        and first in _NOUN_VERBS
    ):
        return first, words[1:]
    if _is_verb(last) and last not in ("set", "order", "record", "plan", "log", "test", "type"):
        return last, words[:-1]
    for index, word in enumerate(words[1:-1], start=1):
        if _is_verb(word) and word in VERBS and word not in _NOUN_VERBS:
            return word, words[:index] + words[index + 1 :]
    return "", words


_NOUN_VERBS = frozenset(
    "order record plan log book list show store post request count total set start test".split()
)


def _action(verb: str) -> str:
    if not verb:
        return ""
    if verb in TRANSITIONS:
        return "transition"
    if verb in ADJUSTMENTS:
        return "adjust"
    if verb in VERBS:
        return VERBS[verb]
    return "unsupported"


def _head(rest: Phrase) -> tuple[Phrase, Phrase]:
    """Return the noun phrase before the first preposition, and the modifiers in front of it."""
    end = next((index for index, word in enumerate(rest) if word in PREPOSITIONS), len(rest))
    head = list(rest[:end])
    while len(head) > 1 and head[0] in HARMLESS_MODIFIERS:
        head.pop(0)
    if head == ["all"]:
        head = []
    while len(head) > 1 and (head[-1] in DETAIL_NOUNS or head[-1] == "list"):
        head.pop()
    modifiers = []
    while len(head) > 1 and head[0] in _CHOOSING_WORDS:
        modifiers.append(head.pop(0))
    return tuple(head), tuple(modifiers)


_CHOOSING_WORDS = frozenset(
    "recent latest last next first current active open closed completed pending overdue upcoming popular top"
    " trending random favorite favourite public private shared due today daily free available".split()
)


# --- identifiers ------------------------------------------------------------------------------


def identifier_base(parameter: str) -> Phrase | None:
    """Return the noun of an identifier parameter (`()` for a bare `id`), None for other parameters."""
    words = split_name(parameter)
    for index in range(len(words) - 1, -1, -1):
        if words[index] in _IDENTIFIER_WORDS:
            if any(word not in _ALTERNATIVES for word in words[index + 1 :]):
                return None
            base = list(words[:index])
            while len(base) > 1 and base[-1] in _ALTERNATIVES:
                base.pop()
            return tuple(base)
    return None


def weak_identifier_base(parameter: str) -> Phrase | None:
    """Return the noun of a parameter that may name a row: `workspaceSlug`, `project_key`, `project`."""
    words = split_name(parameter)
    if len(words) > 1 and words[-1] in _WEAK_IDENTIFIER_WORDS:
        return words[:-1]
    return words


class Vocabulary:
    """The kinds of things a toolset is about, and how its names refer to them."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        acting = [reading for reading in readings if reading.action != "unsupported" and reading.head]
        self._heads = Counter(reading.head for reading in acting)
        self._families: set[Phrase] = set()
        for reading in readings:
            for parameter in reading.tool.properties:
                base = identifier_base(parameter)
                if base:
                    self._families.add((*base[:-1], singular(base[-1])))
        self.entities: list[Phrase] = []
        for reading in acting:
            entity = self._canonical(reading.head)
            if entity not in self.entities:
                self.entities.append(entity)

    def _canonical(self, head: Phrase) -> Phrase:
        """Return the entity a head stands for: `command task` is a task where tasks have identifiers."""
        if head in self._families:
            return head
        for start in range(1, len(head)):
            tail = head[start:]
            if tail in self._families or self._heads[tail] > 1:
                return tail
            if head[:start] in self._families and tail in self._heads:
                return tail
        full = [other for other in self._heads if other != head and _abbreviates(head, other)]
        return full[0] if len(full) == 1 else head

    def of_head(self, head: Phrase) -> Phrase | None:
        """Return the entity of a tool's head."""
        if not head:
            return None
        entity = self._canonical(head)
        return entity if entity in self.entities else None

    def of_base(self, base: Phrase) -> Phrase | None:
        """Return the entity that an identifier's noun refers to, None for identifiers of other things."""
        if not base:
            return None
        base = (*base[:-1], singular(base[-1]))
        if base in self.entities:
            return base
        longer = [entity for entity in self.entities if entity[-len(base) :] == base]
        if len(longer) == 1:
            return longer[0]
        for start in range(1, len(base)):
            if base[start:] in self.entities:
                return base[start:]
        short = [entity for entity in self.entities if _abbreviates(base, entity)]
        if len(short) == 1:
            return short[0]
        if base[-1] in _PERSON_ROLES:
            people = [entity for entity in self.entities if entity[-1] in _PERSON_NOUNS]
            return min(people, key=lambda entity: _PERSON_NOUNS.index(entity[-1]), default=None)
        return None


def _abbreviates(short: Phrase, long: Phrase) -> bool:
    """Tell whether `pr` stands for `pull request`, or `repo` for `repository`."""
    if len(short) != 1 or short == long:
        return False
    word = short[0]
    if len(long) > 1:
        return word == "".join(part[0] for part in long)
    whole = "".join(long)
    return len(word) >= 3 and len(whole) >= len(word) + 3 and whole.startswith(word)
