"""A simulated world: facts and preferences over time, and a user with questions.

The ground truth of a question follows from the facts of the world: the fact in question, its value
at that time, and the messages that state the value. It uses no feature of a policy, no score and no
vector.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from memlab.errors import InputError
from memlab.kernel.base.arguments import Seed, checked
from memlab.kernel.base.clock import DAY, HOUR, Micros, to_micros
from memlab.science.simulation._events import Event, MessageEvent, QuestionEvent, User, generator

__all__ = [
    "ASPECTS",
    "DUTIES",
    "FORMS",
    "FRESH",
    "HABIT",
    "NAMES",
    "PROBING",
    "SURE",
    "TASTES",
    "WORLDS",
    "Aspect",
    "Phase",
    "World",
    "take_names",
]


# The vocabulary of simulated worlds is in ``words.toml``.


@dataclass(frozen=True)
class Aspect:
    """A property that has one value at a time, such as the database of a project.

    ``names`` are synonyms of the property, ``values`` its possible values, and ``kind`` is the kind
    of the memories that state it.
    """

    names: tuple[str, ...]
    values: tuple[str, ...]
    kind: str


# The vocabulary is read once.
_TABLES = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _read_aspects(name: str) -> tuple[Aspect, ...]:
    """Read simulated properties with their synonyms and values from a vocabulary table."""
    return tuple(
        Aspect(tuple(row["names"]), tuple(row["values"]), row["kind"]) for row in _TABLES[name]
    )


ASPECTS, TASTES, (DUTIES,) = (
    _read_aspects("aspects"),
    _read_aspects("tastes"),
    _read_aspects("duties"),
)
NAMES: dict[str, list[str]] = _TABLES["names"]
"""The names of people, projects and places, and reasons, as lists by subject."""

FORMS: dict[str, dict[str, list[str]]] = _TABLES["forms"]
"""Templates of messages, by sort (project, taste, duty, talk) and then by function."""


def take_names(pool: list[str], number: int, what: str) -> tuple[str, ...]:
    """Return the first ``number`` names of a list of names.

    If the pool has too few names, they are used again with a number.

    >>> take_names(["Ida", "Bo"], 3, "person")
    ('Ida', 'Bo', 'Ida 2')
    """
    if number < 1:
        raise InputError(f"A World needs at least one {what}, not {number}.")
    rounds = (divmod(index, len(pool)) for index in range(number))
    return tuple(
        pool[index] + (f" {round_number + 1}" if round_number else "")
        for round_number, index in rounds
    )


# The first day of all worlds is a Monday.
_SECOND = HOUR // 3600
_START = "2026-01-05"
_MISLABELLED = 0.2
"""The share of messages with a wrong kind: an agent can only guess kinds."""

# The speakers of a world.
_USER, _AGENT = "Robin", "assistant"
_ABOUT = ("now", "before", "why")
"""The sorts of questions, in the order of ``World.about``."""


@checked
@dataclass(frozen=True)
class Phase:
    """A phase of a world: rates that apply to a stretch of its days.

    Parameters
    ----------
    until
        The share of the world's days at which the phase ends, 0 to 1.
    change_days
        The mean number of days for which a value of a fact is valid.
    repeats
        How often the value of a fact is stated again within thirty days, on average.
    noise
        The relative frequency of irrelevant messages per day.
    questions
        The relative frequency of questions per day.

    Examples
    --------
    >>> World("calm", days=4, phases=(Phase(0.5, change_days=400.0), Phase())).phase(3).change_days
    40.0
    """

    until: float = 1.0
    change_days: float = 40.0
    repeats: float = 0.8
    noise: float = 1.0
    questions: float = 1.0


@checked
@dataclass(frozen=True)
class World:
    """The settings of a simulated run.

    The same settings give the same events, byte for byte.

    Parameters
    ----------
    name
        The name of the world.
    doc
        The purpose of the world.
    seed
        The seed of all random draws.
    days
        The number of days, at least 1.
    projects, people
        The number of projects, and of people in each project.
    aspects
        The number of facts of each project.
    tastes
        The number of preferences of the user.
    messages_per_day
        The mean number of messages per day. Irrelevant messages are added until this number is
        reached.
    questions_per_day
        The mean number of questions per day.
    phases
        The phases in order; the last ends at 1.
    replies
        The share of values that answer a question of the agent, so that the answer alone is
        incomplete.
    reasons
        The share of values with a stated reason.
    synonyms
        The share of questions that name the fact by a synonym.
    about
        The weights of questions about the present value, the previous value and the reason.
    grading
        "facts" if memories are useful for the fact in question; "alike" if all memories are equally
        useful at a time.
    user
        The user who judges the memories shown.
    packs
        The packs that log, each with the day from which it is live.

    Examples
    --------
    >>> world = World("tiny", days=3, projects=2)
    >>> world.events() == World("tiny", days=3, projects=2).events()
    True
    """

    name: str
    doc: str = ""
    seed: Seed = 0
    days: int = 90
    projects: int = 8
    people: int = 3
    aspects: int = 10
    tastes: int = 8
    messages_per_day: float = 17.0
    questions_per_day: float = 6.7
    phases: tuple[Phase, ...] = (Phase(),)
    replies: float = 0.3
    reasons: float = 0.35
    synonyms: float = 0.5
    about: tuple[float, float, float] = (0.72, 0.14, 0.14)
    grading: Literal["facts", "alike"] = "facts"
    user: User = field(default_factory=User)
    packs: tuple[tuple[int, str], ...] = ((0, "memlab"),)

    def __post_init__(self) -> None:
        if self.days < 1 or self.messages_per_day < 0 or self.questions_per_day < 0:
            raise InputError(
                "days of a World must be at least 1, and messages_per_day and questions_per_day at least 0."
            )
        if not 1 <= self.aspects <= len(ASPECTS) or not 0 <= self.tastes <= len(TASTES):
            raise InputError(
                f"A World must have 1 to {len(ASPECTS)} aspects and 0 to {len(TASTES)} tastes, not {self.aspects} and "
                f"{self.tastes}."
            )
        for name in ("replies", "reasons", "synonyms"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"{name} of a World must be within 0..1, not {getattr(self, name)!r}."
                )
        shares = [phase.until for phase in self.phases]
        if not shares or sorted(shares) != shares or shares[-1] < 1:
            raise InputError(
                f"Phase.until must be rising from phase to phase and end at 1 (a share of the World's days), not {shares}."
            )
        if not self.packs or self.packs[0][0] != 0:
            raise InputError(
                "The first pack of a simulated World must be active from day 0. Pass packs=((0, pack), ...)."
            )

    def events(self) -> tuple[Event, ...]:
        """Return the messages and questions in temporal order.

        Ids of memories follow the order of the messages, from 1.

        Returns
        -------
        tuple
            The messages and questions.
        """
        return self._events

    # Cached, because composing the events of a quarter takes seconds.
    @cached_property
    def _events(self) -> tuple[Event, ...]:
        """The messages and questions in temporal order."""
        script = _Composer(self)
        return tuple(sorted([*script.messages, *script.questions()], key=lambda event: event.at))

    @checked
    def phase(self, day: int) -> Phase:
        """Return the phase to which a day belongs.

        Parameters
        ----------
        day
            The number of the day, from 0.

        Returns
        -------
        Phase
            The phase that the day belongs to.
        """
        return next(
            phase
            for phase in self.phases
            if (day + 0.5) / self.days <= phase.until or phase.until >= 1
        )


@dataclass
class _Draft:
    """A message that has no ref yet."""

    at: Micros
    text: str
    kind: str
    project: str
    everywhere: bool
    speaker: str
    tags: tuple[str, ...]
    weight: float


@dataclass
class _Version:
    """One value of a fact, with the indices of the drafts that state it or its reason."""

    value: str
    old: str | None
    at: Micros
    until: Micros
    statements: list[int] = field(default_factory=list)
    reasons: list[int] = field(default_factory=list)


@dataclass
class _Fact:
    """A property of a project, person or user, with its values over time."""

    sort: Literal["project", "taste", "duty"]
    aspect: Aspect
    project: str
    person: str
    versions: list[_Version] = field(default_factory=list)


class _Composer:
    """The composition of a world's events: facts, messages about them, then questions."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.start = to_micros(_START)
        self.end = self.start + world.days * DAY
        self.projects = take_names(NAMES["projects"], world.projects, "project")
        self.people = take_names(NAMES["people"], max(world.people, 1) * 2, "person")
        self.drafts: list[_Draft] = []
        self.facts = self._draw_facts()
        self._state_facts()
        self._write_noise()
        order = sorted(range(len(self.drafts)), key=lambda index: self.drafts[index].at)
        self.ref = {draft: f"u{number}" for number, draft in enumerate(order, 1)}
        self.messages = [self._make_message(index) for index in order]

    # -- facts ------------------------------------------------------------------------------------------------

    def _draw_facts(self) -> list[_Fact]:
        """Draw the facts, their values, and the time at which each value becomes valid."""
        world, rng = self.world, generator(self.world.seed, "facts")
        facts: list[_Fact] = []
        for project in self.projects:
            aspects = rng.permutation(len(ASPECTS))[: world.aspects]
            facts += [_Fact("project", ASPECTS[index], project, _USER) for index in aspects]
            people = rng.permutation(len(self.people))[: world.people]
            facts += [_Fact("duty", DUTIES, project, self.people[index]) for index in people]
        tastes = rng.permutation(len(TASTES))[: world.tastes]
        facts += [
            _Fact("taste", TASTES[index], str(rng.choice(self.projects)), _USER) for index in tastes
        ]
        # Every fact has a value after a sixth of the days, so that most questions have an answer.
        settled = max(1, world.days // 6)
        for fact in facts:
            changes = rng.random(world.days)
            first = int(rng.integers(settled))
            days = [first]
            days += [
                day
                for day in range(first + 1, world.days)
                if changes[day] < 1 / world.phase(day).change_days
            ]
            times = [self._draw_time(day, rng) for day in days]
            value: str | None = None
            for at, until in zip(times, [*times[1:], self.end], strict=True):
                others = [other for other in fact.aspect.values if other != value]
                new = str(rng.choice(others))
                fact.versions.append(_Version(new, value, at, until))
                value = new
        return facts

    def _draw_time(self, day: int, rng: np.random.Generator) -> Micros:
        """Return a random time between 8 and 17 hours after the start of a day."""
        return self.start + day * DAY + 8 * HOUR + int(rng.random() * 9 * HOUR)

    # -- messages ---------------------------------------------------------------------------------------------

    def _state_facts(self) -> None:
        """Write messages that state each value of each fact, with reasons and repetitions."""
        world, rng = self.world, generator(self.world.seed, "wording")
        forms = FORMS["project"]
        for fact in self.facts:
            for version in fact.versions:
                at = version.at
                if fact.sort == "project" and rng.random() < world.replies:
                    self._write_message(fact, version, at, forms["asked-back"], rng, speaker=_AGENT)
                    stated = self._write_message(
                        fact, version, at + 20 * _SECOND, forms["answers"], rng, speaker=fact.person
                    )
                else:
                    stated_first = version.old is None or rng.random() < 0.3
                    stating = FORMS[fact.sort]["plain" if stated_first else "updates"]
                    stated = self._write_message(
                        fact, version, at, stating, rng, speaker=fact.person
                    )
                version.statements.append(stated)
                if fact.sort != "duty" and rng.random() < world.reasons:
                    why = self._write_message(
                        fact, version, at + 45 * _SECOND, forms["reasons"], rng, speaker=fact.person
                    )
                    version.reasons.append(why)
                self._repeat_statements(fact, version, rng)

    def _repeat_statements(self, fact: _Fact, version: _Version, rng: np.random.Generator) -> None:
        """Write messages that repeat a value while it is valid."""
        first, last = ((at - self.start) // DAY for at in (version.at, version.until))
        rolls = rng.random(max(0, int(last - first)))
        for offset, roll in enumerate(rolls):
            day = int(first) + offset
            if roll >= self.world.phase(day).repeats / 30:
                continue
            at = self._draw_time(day, rng)
            if not version.at < at < version.until:
                continue
            repetition = self._write_message(
                fact, version, at, FORMS[fact.sort]["plain"], rng, speaker=fact.person
            )
            if rng.random() < 0.4:
                self.drafts[repetition].text = self.drafts[version.statements[0]].text
            version.statements.append(repetition)

    def _write_message(
        self,
        fact: _Fact,
        version: _Version,
        at: Micros,
        forms: Sequence[str],
        rng: np.random.Generator,
        *,
        speaker: str,
    ) -> int:
        """Write a message about a fact from a random template; return the message's index."""
        text = str(rng.choice(forms)).format(
            **self._fill_slots(fact, version, str(rng.choice(fact.aspect.names)), rng)
        )
        tags = (fact.aspect.names[0].replace(" ", "-"),) if rng.random() < 0.5 else ()
        weight = float(np.clip(rng.normal(0.6, 0.15), 0, 1))
        kind = "turn" if rng.random() < _MISLABELLED else fact.aspect.kind
        self.drafts.append(
            _Draft(
                at,
                text[0].upper() + text[1:],
                kind,
                fact.project,
                fact.sort == "taste",
                speaker,
                tags,
                weight,
            )
        )
        return len(self.drafts) - 1

    def _fill_slots(
        self, fact: _Fact, version: _Version, name: str, rng: np.random.Generator
    ) -> dict[str, str]:
        """Return the values that fill the slots of a template."""
        return {
            "project": fact.project,
            "name": name,
            "value": version.value,
            "old": version.old or "before",
            "person": fact.person,
            "why": str(rng.choice(NAMES["whys"])),
        }

    def _write_noise(self) -> None:
        """Write messages that answer no question, until enough messages exist.

        They mention a property without its value, wonder about a property, or are asides.
        """
        world, rng = self.world, generator(self.world.seed, "noise")
        count = max(0, round(world.messages_per_day * world.days) - len(self.drafts))
        share = np.array([world.phase(day).noise for day in range(world.days)], dtype=np.float64)
        if not count or not share.sum():
            return
        for day in rng.choice(world.days, size=count, p=share / share.sum()):
            fact = self.facts[int(rng.integers(len(self.facts)))]
            sort = rng.random()
            forms = FORMS["talk"][
                "mentions" if sort < 0.4 else "wonders" if sort < 0.55 else "asides"
            ]
            text = str(rng.choice(forms)).format(
                project=fact.project,
                name=str(rng.choice(fact.aspect.names)),
                person=str(rng.choice(self.people)),
                place=str(rng.choice(NAMES["places"])),
                value=str(rng.choice(fact.aspect.values)),
            )
            kind = "decision" if rng.random() < _MISLABELLED else "turn"
            weight = float(np.clip(rng.normal(0.45, 0.15), 0, 1))
            moment = self._draw_time(int(day), rng)
            self.drafts.append(_Draft(moment, text, kind, fact.project, False, _USER, (), weight))

    def _make_message(self, index: int) -> MessageEvent:
        """Return the draft at this index as an event with a ref."""
        draft = self.drafts[index]
        return MessageEvent(
            at=draft.at,
            ref=self.ref[index],
            text=draft.text,
            kind=draft.kind,
            project=None if draft.everywhere else draft.project,
            session=self._name_session(draft.project, draft.at),
            speaker=draft.speaker,
            importance=round(draft.weight, 3),
            tags=draft.tags,
        )

    def _name_session(self, project: str, at: Micros) -> str:
        """Return a session's name: the project and the number of the day."""
        return f"{project} {(at - self.start) // DAY + 1}"

    # -- questions --------------------------------------------------------------------------------------------

    def questions(self) -> list[QuestionEvent]:
        """Draw the questions about stated facts, in temporal order."""
        world, rng = self.world, generator(self.world.seed, "questions")
        by_project: dict[str, list[_Fact]] = {name: [] for name in self.projects}
        tastes = [fact for fact in self.facts if fact.sort == "taste"]
        for fact in self.facts:
            if fact.sort != "taste":
                by_project[fact.project].append(fact)
        share = np.array(
            [world.phase(day).questions for day in range(world.days)], dtype=np.float64
        )
        count = round(world.questions_per_day * world.days)
        if not share.sum():
            return []
        days = rng.choice(world.days, size=count, p=share / share.sum())
        moments = sorted(self._draw_time(int(day), rng) for day in days)
        mood = generator(world.seed, "mood")
        level = dict(zip(self.projects, mood.uniform(0.15, 0.45, len(self.projects)), strict=True))
        questions: list[QuestionEvent] = []
        for at in moments:
            project = self.projects[int(rng.integers(len(self.projects)))]
            facts = tastes if tastes and rng.random() < 0.2 else by_project[project]
            # The popularity of facts follows Zipf's law, so that a few facts of each project get most questions.
            stated_ranks = [
                rank for rank, fact in enumerate(facts, 1) if self._is_stated(fact.versions[0], at)
            ]
            if not stated_ranks:
                continue
            need = 1.0 / np.array(stated_ranks)
            fact = facts[int(rng.choice(stated_ranks, p=need / need.sum())) - 1]
            about = _ABOUT[int(rng.choice(len(_ABOUT), p=np.array(world.about) / sum(world.about)))]
            text, useful = self._write_question(fact, about, project, at, rng)
            otherwise = 0.0
            if world.grading == "alike":
                useful, otherwise = (
                    {},
                    float(np.clip(level[project] + mood.uniform(-0.15, 0.15), 0, 1)),
                )
            questions.append(
                QuestionEvent(at, len(questions) + 1, text, project, useful, otherwise)
            )
        return questions

    def _is_stated(self, version: _Version, at: Micros) -> bool:
        """Return whether a value was stated before a time."""
        return self.drafts[version.statements[0]].at < at

    def _write_question(
        self, fact: _Fact, about: str, project: str, at: Micros, rng: np.random.Generator
    ) -> tuple[str, Mapping[str, float]]:
        """Return a question about a stated fact, with the utility of each message.

        Where the fact has no earlier value or no reason, the question asks for the current
        value.
        """
        versions = [version for version in fact.versions if self._is_stated(version, at)]
        if (about == "before" and len(versions) < 2) or (
            about == "why" and not versions[-1].reasons
        ):
            about = "now"
        name = fact.aspect.names[0]
        if rng.random() < self.world.synonyms:
            name = str(rng.choice(fact.aspect.names[1:]))
        form = str(rng.choice(FORMS[fact.sort][about]))
        version = versions[-2] if about == "before" else versions[-1]
        filling = self._fill_slots(fact, version, name, rng) | {"project": project}
        return form.format(**filling), self._grade_messages(versions, about, at)

    def _grade_messages(self, versions: list[_Version], about: str, at: Micros) -> dict[str, float]:
        """Return the utility of each message for a question, by ref.

        The latest statement of the value in question has the utility 1, repetitions and reasons have less.
        Messages without a utility, such as statements of outdated values, are left out. For the previous
        value, statements of the present value have up to .2.
        """
        grades: dict[str, float] = {}

        def grade(drafts: list[int], newest: float, others: float) -> None:
            """Set one utility for the latest earlier message, another for all older messages."""
            earlier = sorted(
                (index for index in drafts if self.drafts[index].at < at),
                key=lambda i: self.drafts[i].at,
            )
            for index in earlier:
                grades[self.ref[index]] = newest if index == earlier[-1] else others

        if about == "before":
            grade(versions[-2].statements, 1.0, 0.6)
            grade(versions[-1].statements, 0.2, 0.1)
        elif about == "why":
            grade(versions[-1].reasons, 1.0, 1.0)
            grade(versions[-1].statements, 0.4, 0.2)
        else:
            grade(versions[-1].statements, 1.0, 0.6)
            grade(versions[-1].reasons, 0.3, 0.3)
        return grades


# Worlds with a purpose: a difference to find, a confounder to resist, and a tie in which no claim is right.


# Each recall has many probes, so that a log of three months has the evidence of years.
_PROBES = "(setting limit 5) (setting probe-rate 1) (setting probe-depth 95) (setting probe-floor 0.5) (setting probes 8)"

# The packs that log the worlds. Their texts are hashed.
PROBING = f"""(pack probing "The default pack: five memories, and eight probes from all its pool." :inherits memlab)
{_PROBES}
"""

# A pack without exploration.
SURE = """(pack sure "The default pack, five memories, never a probe." :inherits memlab)
(setting limit 5) (setting probe-rate 0)
"""

# A pack that prefers old and often used memories.
HABIT = f"""(pack habit "What is near, and what is old and was often recalled." :inherits memlab)
{_PROBES}
(defpolicy recall-score [similarity lexical access age-days]
  (+ (min-max similarity) (min-max lexical) (* 0.5 (min-max access)) (* 1.5 (min-max age-days))))
"""

# A pack that prefers new memories.
FRESH = f"""(pack fresh "What is near, and what is new." :inherits memlab)
{_PROBES}
(defpolicy recall-score [similarity lexical age-days]
  (- (+ (min-max similarity) (min-max lexical)) (* 0.8 (min-max age-days))))
"""

# In the first world, packs differ in their value.
_DIFFERS = World(
    "differs",
    "Three months of work in eight projects, with probes in every recall. The packs differ greatly, and an offline "
    "evaluation on the log of one must find their order.",
    seed=11,
    phases=(Phase(0.4, change_days=45.0), Phase(1.0, change_days=30.0)),
    synonyms=0.2,
    packs=((0, PROBING),),
)

# In the second world, a confounder gives the better pack the lower reward.
_REVERSES = World(
    "reverses",
    "A quiet half without changes and with many repetitions, then a hectic half in which values last a week among three "
    "times the noise. The pack habit was live in the first half, fresh in the second. Habit has the higher reward per "
    "recall, but fresh is better. A comparison of mean rewards picks the wrong pack; weighting by propensities does not.",
    seed=23,
    phases=(
        Phase(0.5, change_days=400.0, repeats=4.0, noise=0.5, questions=1.0),
        Phase(1.0, change_days=6.0, repeats=0.4, noise=1.5, questions=1.5),
    ),
    replies=0.15,
    synonyms=0.2,
    about=(1.0, 0.0, 0.0),
    packs=((0, HABIT), (45, FRESH)),
)

# In the third world, all packs have the same value.
_SAME = World(
    "same",
    "All memories are equally useful to the user at a time; only the hour and the project matter. Every policy that shows "
    "five memories has the same value, so there is no winner.",
    seed=37,
    grading="alike",
    packs=((0, PROBING),),
)

WORLDS: Mapping[str, World] = MappingProxyType(
    {world.name: world for world in (_DIFFERS, _REVERSES, _SAME)}
)
"""The seeded worlds by name; ``WORLDS[name].doc`` states the purpose of each."""
