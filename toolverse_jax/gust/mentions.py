"""Says rows and values: noun phrases for new rows and for references, dates with the year only when needed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence

from toolverse_jax.gust.attributes import Attribute, part_of_day, unit_noun
from toolverse_jax.gust.phrases import (
    date_words,
    indefinite,
    label_words,
    number_words,
    participle,
    pick,
    quote,
)
from toolverse_jax.gust.trace import Reference
from toolverse_jax.gust.wording import Wording
from toolverse_jax.types import JSON


class Speaker:
    """One user's way of speaking; remembers within a turn which year was said.

    Args:
        wording: words of the environment.
        rng: source of all choices.
        register: `plain`, `polite`, `brisk` or `chatty`.
        month_first: whether the user says `March 12`.
        year: year of dates when it is left out; None: not known yet.
    """

    def __init__(
        self, wording: Wording, rng: random.Random, *, register: str, month_first: bool, year: int | None
    ) -> None:
        self.wording = wording
        self.rng = rng
        self.register = register
        self.month_first = month_first
        self.year = year
        self.mentions = 0
        """References said so far in this message."""

    # --- values -------------------------------------------------------------------------------

    def value(self, attribute: Attribute, value: JSON) -> str:
        """Say a value without quotation marks."""
        if attribute.is_date and isinstance(value, str):
            year = int(value[:4])
            words = date_words(value, year=year != self.year, month_first=self.month_first)
            self.year = year
            return words
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int | float):
            return number_words(value)
        return label_words(value) if attribute.field.enum or attribute.field.type == "enum" else str(value)

    def fill(self, template: str, attribute: Attribute, value: JSON, ref: str = "") -> str:
        """Fill `{v}`, `{n}`, `{ref}`, `{head}`, `{at}` and `{not}` of a template."""
        said = self.value(attribute, value) if "{v}" in template or "{at}" in template else ""
        if said and attribute.field.type == "string" and not attribute.field.enum:
            said = self._quoted_if_plain(attribute, said)
        number = value if isinstance(value, int | float) else 0
        quantity = (
            f"{number_words(number)} {unit_noun(attribute, number)}"
            if attribute.unit
            else number_words(number)
        )
        filled = template.replace("{head}", attribute.head).replace("{at}", part_of_day(said))
        filled = filled.replace("{not}", "" if value else "not ")
        return with_reference(filled.replace("{n}", quantity).replace("{v}", said), ref)

    def _quoted_if_plain(self, attribute: Attribute, said: str) -> str:
        """Quote what would run into the sentence: titles, and several words in lower case."""
        if attribute.naming == "title" or (said[:1].islower() and " " in said and not attribute.person):
            return quote(said)
        return said

    # --- new rows -----------------------------------------------------------------------------

    def new_row(self, entity: str, values: Sequence[tuple[Attribute, JSON]], *, determiner: str = "") -> str:
        """Say a row to be made: `a red bike called Swift`; only adjectives, its name and `with` phrases."""
        befores = [self.fill(a.before, a, v) for a, v in values if a.before and a.naming != "plain"]
        noun = self.wording.noun(entity) if befores else self.wording.full_noun(entity)
        afters: list[str] = []
        for attribute, value in values:
            if attribute.naming == "plain":
                said = str(value)
                if self.rng.random() < 0.5:
                    befores.append(said if said[:1].isupper() else quote(said))
                else:
                    afters.insert(0, f"called {said}" if said[:1].isupper() else quote(said))
            elif attribute.naming in ("name", "title", "label"):
                facts = any(not (a.naming or a.before) for a, _ in values)
                afters.insert(0, self._called(attribute, str(value), facts=facts))
            elif attribute.after and not attribute.before:
                # A name comes first, in the last of its forms, which does not clash with other phrases.
                template = attribute.after[-1] if attribute.naming else pick(self.rng, attribute.after)
                afters.insert(0 if attribute.naming else len(afters), self.fill(template, attribute, value))
        phrase = " ".join([*befores, noun])
        article = determiner or pick(self.rng, ("", "", "new"))
        said = f"{article} {phrase}".strip()
        return " ".join([said if determiner else indefinite(said), *_chained(afters)])

    def _called(self, attribute: Attribute, value: str, *, facts: bool) -> str:
        if attribute.head in ("text", "content", "body", "summary"):
            return f"{pick(self.rng, ('saying', 'that says'))} {quote(value)}"
        if attribute.naming == "title":
            return f"{pick(self.rng, ('called', 'titled', 'called' if facts else 'with the title'))} {quote(value)}"
        if attribute.naming == "label":
            said = value if value[:1].isupper() else quote(value)
            return f"{pick(self.rng, ('labelled', 'labelled' if facts else 'with the label'))} {said}"
        said = quote(value) if value[:1].islower() and " " in value and self.rng.random() < 0.4 else value
        return f"{pick(self.rng, ('called', 'named', 'called'))} {said}"

    # --- references ---------------------------------------------------------------------------

    def row(self, reference: Reference) -> str:
        """Say a reference to a row: `the stay for Silver Wren at Blue 1`, `that berth`, `it`."""
        self.mentions += 1
        noun = self.wording.noun(reference.entity)
        if reference.mention == "it":
            return "it"
        if reference.mention == "that":
            return f"that {noun}"
        if reference.mention == "new":
            made = [f"the new {noun}", f"that {noun}", f"that new {noun}"]
            if reference.verb:
                made.append(f"the {noun} you just {participle(reference.verb)}")
            return pick(self.rng, made)
        if reference.parent is None:
            return " ".join(self._described(reference, noun)).strip()
        core, late = self._described(reference, noun)
        parent = reference.parent
        relation = self.wording.relation(reference.entity, parent.entity)
        if relation == "of" and self.wording.is_person(parent.entity) and core.startswith("the "):
            return f"{_possessive(self.row(parent))} {core.removeprefix('the ')} {late}".strip()
        under = self.under(reference.entity, parent)
        # "the loan of the bowl to Lake House", but "the stay for Silver Wren at Blue 1"
        first, second = (
            (under, late) if late.startswith(("to ", "with ")) and relation == "of" else (late, under)
        )
        return " ".join(f"{core} {first} {second}".split())

    def under(self, child: str, parent: Reference, link: str = "") -> str:
        """Say which row another belongs to: `on Heron Pier`."""
        link = link or self.wording.relation(child, parent.entity).rpartition(" ")[2]
        return f"{link} {self.row(parent)}"

    def _described(self, reference: Reference, noun: str) -> tuple[str, str]:
        """Return the noun phrase with the row's name, and the phrases after it."""
        attributes = [(self.wording.attribute(reference.entity, f), v) for f, v in reference.attributes]
        befores = [self.fill(a.before, a, v) for a, v in attributes if a.before and a.naming != "plain"]
        afters = self._afters(attributes)
        named = next(
            ((a, str(v)) for a, v in attributes if a.naming in ("name", "title", "label", "plain")), None
        )
        if named is None:
            possessor = next((v for a, v in attributes if a.naming == "phrase" and a.person), None)
            if possessor is not None and len(attributes) == 1 and self.rng.random() < 0.4:
                return f"{_possessive(str(possessor))} {noun}", ""
            return " ".join(["the", *befores, noun]), " ".join(_chained(afters))
        bare = not befores and not afters
        core = self._named(named[0], named[1], noun, " ".join(befores), bare)
        return core, " ".join(_chained(afters))

    def _afters(self, attributes: Iterable[tuple[Attribute, JSON]]) -> list[str]:
        afters = []
        for attribute, value in attributes:
            if attribute.before or attribute.naming in ("name", "title", "label", "plain"):
                continue
            template = attribute.after[0] if attribute.after else "with the {head} {v}"
            afters.append(self.fill(template, attribute, value))
        return afters

    def _named(self, attribute: Attribute, value: str, noun: str, before: str, bare: bool) -> str:
        """Say a row by its name, in the way names of this kind are said."""
        the_noun = f"the {before} {noun}" if before else f"the {noun}"
        proper = value[:1].isupper()
        own_noun = noun.endswith(value.rpartition(" ")[2].lower())
        if attribute.naming == "title":
            options = [f"{the_noun} {quote(value)}"] + ([quote(value)] if bare else [])
        elif attribute.person or (proper and own_noun):
            options = [value] if bare else [f"{the_noun} {value}"]
        elif attribute.naming == "plain":
            options = [
                f"the {value} {noun}" if proper else f"the {quote(value)} {noun}",
                f"{the_noun} {quote(value)}",
            ]
        elif proper:
            options = [f"{the_noun} {value}"] * 2 + ([value, f"{noun} {value}"] if bare else [])
        elif attribute.naming == "name":
            options = [f"the {before} {value}" if before else f"the {value}", f"{the_noun} {quote(value)}"]
        else:
            options = [f"{the_noun} {quote(value)}", f"{the_noun} labelled {quote(value)}"]
        return pick(self.rng, options)


def _chained(afters: Sequence[str]) -> list[str]:
    """Join phrases after a noun: a second `with` becomes `and`."""
    chained: list[str] = []
    for phrase in afters:
        previous = chained[-1] if chained else ""
        again = phrase.startswith("with ") and previous.startswith(("with ", "and "))
        chained.append(f"and {phrase.removeprefix('with ')}" if again else phrase)
    return chained


def with_reference(template: str, ref: str) -> str:
    """Put a reference into a template: `the length of {ref}` becomes `its length` for a pronoun."""
    if ref == "it":
        template = re.sub(r"\bthe ((?:\w+ ){1,3})of \{ref\}", r"its \1", template).replace("  ", " ")
    return template.replace("{ref}", ref).strip()


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"
