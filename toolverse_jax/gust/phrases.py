"""English word forms and verbalised values: articles, plurals, participles, dates, numbers, lists."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence

from toolverse_jax.types import JSON

MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
_IRREGULAR_PLURALS = {
    "child": "children",
    "foot": "feet",
    "goose": "geese",
    "half": "halves",
    "knife": "knives",
    "leaf": "leaves",
    "life": "lives",
    "loaf": "loaves",
    "man": "men",
    "mouse": "mice",
    "person": "people",
    "shelf": "shelves",
    "tooth": "teeth",
    "wolf": "wolves",
    "woman": "women",
}
_IRREGULAR_SINGULARS = {plural: singular for singular, plural in _IRREGULAR_PLURALS.items()} | {
    "movies": "movie",
    "series": "series",
    "species": "species",
    "analyses": "analysis",
}
_INVARIANT = frozenset("series species sheep fish equipment information software news".split())
_VOWEL_SOUND = re.compile(r"(?:hour|honest|honou?r|heir|[aeiou])", re.IGNORECASE)
_CONSONANT_SOUND = re.compile(r"(?:uni(?!n|m)|use|usu|user|util|euro|one\b|once\b|ut[eio])", re.IGNORECASE)
_LETTER_NAME_VOWEL = re.compile(r"[AEFHILMNORSX](?:[A-Z0-9]|\b)")
_IRREGULAR_PARTICIPLES = {
    "begin": "begun",
    "do": "done",
    "find": "found",
    "give": "given",
    "hold": "held",
    "lend": "lent",
    "make": "made",
    "pay": "paid",
    "put": "put",
    "run": "run",
    "send": "sent",
    "set": "set",
    "take": "taken",
    "write": "written",
    "buy": "bought",
    "sell": "sold",
    "lead": "led",
    "leave": "left",
    "teach": "taught",
}
_DOUBLING = frozenset(
    "cancel drop plan ship stop tag trim travel label model submit commit refer swap scrap".split()
)


def article(noun: str) -> str:
    """Return `a` or `an` for a noun phrase."""
    word = noun.lstrip("\"'“ ")
    if _CONSONANT_SOUND.match(word):
        return "a"
    if _VOWEL_SOUND.match(word) or (_LETTER_NAME_VOWEL.match(word) and word[:2].isupper()):
        return "an"
    if re.match(r"8|11\b|18\b", word):
        return "an"
    return "a"


def indefinite(noun: str) -> str:
    """Return a noun phrase with its indefinite article."""
    return f"{article(noun)} {noun}"


def plural(noun: str) -> str:
    """Return the plural of a noun phrase whose head is its last word."""
    head, _, last = noun.rpartition(" ")
    word = _plural_word(last)
    return f"{head} {word}" if head else word


def _plural_word(word: str) -> str:
    lower = word.lower()
    if lower in _INVARIANT or lower in _IRREGULAR_SINGULARS:
        return word
    if lower in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[lower]
    if re.search(r"[^aeiou]y$", lower):
        return word[:-1] + "ies"
    if re.search(r"(?:s|x|z|ch|sh)$", lower):
        return word + "es"
    return word + "s"


def singular(noun: str) -> str:
    """Return the singular of a noun phrase whose head is its last word; a singular comes back as it is."""
    head, _, last = noun.rpartition(" ")
    word = _singular_word(last)
    return f"{head} {word}" if head else word


def _singular_word(word: str) -> str:
    lower = word.lower()
    if lower in _INVARIANT:
        return word
    if lower in _IRREGULAR_SINGULARS:
        return _IRREGULAR_SINGULARS[lower]
    if lower.endswith("ies") and len(lower) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:ches|shes|sses|xes|zes)$", lower):
        return word[:-2]
    if lower.endswith("s") and not re.search(r"(?:ss|us|is)$", lower):
        return word[:-1]
    return word


def is_plural(noun: str) -> bool:
    """Return whether the head of a noun phrase looks like a plural."""
    last = noun.rpartition(" ")[2].lower()
    return last in _IRREGULAR_SINGULARS or (last not in _INVARIANT and _singular_word(last) != last)


def participle(verb: str) -> str:
    """Return the past participle of a verb phrase: `close` gives `closed`."""
    word, space, rest = verb.partition(" ")
    lower = word.lower()
    if lower in _IRREGULAR_PARTICIPLES:
        done = _IRREGULAR_PARTICIPLES[lower]
    elif lower.endswith("e"):
        done = word + "d"
    elif re.search(r"[^aeiou]y$", lower):
        done = word[:-1] + "ied"
    elif lower in _DOUBLING:
        done = word + word[-1] + "ed"
    else:
        done = word + "ed"
    return done + space + rest


def join_words(items: Iterable[str], *, last: str = "and") -> str:
    """Join phrases: `a, b and c`."""
    words = list(items)
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def capitalise(sentence: str) -> str:
    """Return a sentence with a capital first letter, leaving the rest alone."""
    for index, character in enumerate(sentence):
        if character.isalpha():
            return sentence[:index] + character.upper() + sentence[index + 1 :]
        if character not in "\"'(":
            break
    return sentence


def date_words(value: str, *, year: bool, month_first: bool = False) -> str:
    """Say an ISO date or date-time: `12 March`, `March 12, 2031`, `12 March at 09:30`."""
    moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    month = MONTHS[moment.month - 1]
    if month_first:
        words = f"{month} {moment.day}" + (f", {moment.year}" if year else "")
    else:
        words = f"{moment.day} {month}" + (f" {moment.year}" if year else "")
    if "T" in value or " " in value.strip():
        words += f" at {moment:%H:%M}" + (f":{moment:%S}" if moment.second else "")
    return words


_DATE_WORDS = re.compile(
    rf"\b(?:(?P<day>\d{{1,2}}) (?P<month>{'|'.join(MONTHS)})(?: (?P<year>\d{{4}}))?"
    rf"|(?P<month2>{'|'.join(MONTHS)}) (?P<day2>\d{{1,2}})\b(?:, (?P<year2>\d{{4}}))?)"
    r"(?: at (?P<time>\d\d:\d\d(?::\d\d)?))?"
)


def read_dates(text: str, *, year: int) -> list[str]:
    """Return the ISO dates that a text says; a date without a year is of `year`."""
    found = []
    for match in _DATE_WORDS.finditer(text):
        part = match.groupdict()
        day, month = part["day"] or part["day2"], part["month"] or part["month2"]
        number = MONTHS.index(month) + 1
        iso = f"{int(part['year'] or part['year2'] or year):04d}-{number:02d}-{int(day):02d}"
        clock = part["time"]
        found.append(iso + (f"T{clock}" + (":00" if clock.count(":") == 1 else "") if clock else ""))
    return found


def number_words(value: float) -> str:
    """Say a number in digits, without a trailing `.0`."""
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def label_words(value: JSON) -> str:
    """Say a value of an enumeration: underscores become spaces."""
    return str(value).replace("_", " ")


def quantity(number: float, noun: str) -> str:
    """Say a number of things: `1 night`, `4 nights`."""
    return f"{number_words(number)} {singular(noun) if number == 1 else noun}"


def quote(text: str) -> str:
    """Put a title or a text in quotation marks."""
    return f'"{text}"'


def close_sentence(text: str, end: str = ".") -> str:
    """Return a text with single spaces and one closing mark; its first letter is left alone."""
    return " ".join(text.split()).rstrip(" .?!,;:") + end


def count_words(text: str) -> int:
    """Count the words of a message."""
    return len(text.split())


def pick(rng, options: Sequence):
    """Choose one option; `rng` is a `random.Random`."""
    return options[rng.randrange(len(options))]
