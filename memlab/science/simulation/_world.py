"""A world: projects with phases, facts and preferences that hold for a time, and a user who talks and asks.

The truth of a question is read from the facts: which one it is about, what held at that time, and which utterances said
so. No feature of a policy, no score and no vector takes part in it.
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
    "named",
]


# The words of a simulated life, as ``words.toml`` has them: what can be decided, and how it is said.


@dataclass(frozen=True)
class Aspect:
    """Something that has one value at a time. ``names`` are synonyms, ``values`` what it can be."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    kind: str


_TABLES = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _aspects(name: str) -> tuple[Aspect, ...]:
    return tuple(
        Aspect(tuple(one["names"]), tuple(one["values"]), one["kind"]) for one in _TABLES[name]
    )


ASPECTS, TASTES, (DUTIES,) = _aspects("aspects"), _aspects("tastes"), _aspects("duties")
NAMES: dict[str, list[str]] = _TABLES["names"]
"""Of people, projects and places, and reasons why."""

FORMS: dict[str, dict[str, list[str]]] = _TABLES["forms"]
"""Templates by the sort of what is said (project, taste, duty, talk) and by what they say of it."""


def named(pool: list[str], number: int, what: str) -> tuple[str, ...]:
    """The first ``number`` names of a pool, numbered where it runs out: Lantern, ..., Lantern 2.

    >>> named(["Ida", "Bo"], 3, "person")
    ('Ida', 'Bo', 'Ida 2')
    """
    if number < 1:
        raise InputError(f"A world needs at least one {what}, not {number}.")
    rounds = (divmod(index, len(pool)) for index in range(number))
    return tuple(pool[place] + (f" {turn + 1}" if turn else "") for turn, place in rounds)


_SECOND = HOUR // 3600
_START = "2026-01-05"
_MISLABELLED = 0.2
"""The share of messages whose kind is wrong."""

_USER, _AGENT = "Robin", "assistant"
_ABOUT = ("now", "before", "why")


@checked
@dataclass(frozen=True)
class Phase:
    """A stretch of the world's days, up to the share ``until`` of them.

    ``change_days`` is the mean life of a value, ``repeats`` how often a value is said again within thirty days;
    ``noise`` and ``questions`` weigh this phase's share of the talk beside the point, and of the questions.
    """

    until: float = 1.0
    change_days: float = 40.0
    repeats: float = 0.8
    noise: float = 1.0
    questions: float = 1.0


@checked
@dataclass(frozen=True)
class World:
    """The settings of a simulated life. The same settings give the same events, byte for byte.

    ``messages_per_day`` counts what is remembered: facts and their repetitions first, talk beside the point for the
    rest. ``replies`` is the share of values that the agent asks for, so that the answer alone says little;
    ``synonyms`` the share of questions in other words than the statement's. ``grading`` says what is useful: what the
    question is about ("facts"), or every memory alike ("alike"), as pleased as the user is just then. ``packs`` log
    the life, each from its day on.

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
            raise InputError("A world lasts at least one day, and its rates are not negative.")
        if not 1 <= self.aspects <= len(ASPECTS) or not 0 <= self.tastes <= len(TASTES):
            raise InputError(
                f"A world has 1 to {len(ASPECTS)} aspects a project and 0 to {len(TASTES)} tastes, "
                f"not {self.aspects} and {self.tastes}."
            )
        for name in ("replies", "reasons", "synonyms"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(
                    f"{name} of a World is a share of 0..1, not {getattr(self, name)!r}."
                )
        shares = [phase.until for phase in self.phases]
        if not shares or sorted(shares) != shares or shares[-1] < 1:
            raise InputError(
                f"The phases of a World end at rising shares of its days, the last at 1, not {shares}."
            )
        if not self.packs or self.packs[0][0] != 0:
            raise InputError("The first pack of a World is live from day 0 on.")

    def events(self) -> tuple[Event, ...]:
        """What is said and asked, by time. Ids of memories follow the order of what is said, from 1."""
        return self._events

    @cached_property
    def _events(self) -> tuple[Event, ...]:
        script = _Composer(self)
        return tuple(sorted([*script.messages, *script.questions()], key=lambda event: event.at))

    @checked
    def phase(self, day: int) -> Phase:
        """The phase of a day."""
        return next(
            phase
            for phase in self.phases
            if (day + 0.5) / self.days <= phase.until or phase.until >= 1
        )


@dataclass
class _Draft:
    """An utterance before it has a name."""

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
    """One value of a fact, and what was said of it: statements and reasons as indices of drafts."""

    value: str
    old: str | None
    at: Micros
    until: Micros
    statements: list[int] = field(default_factory=list)
    reasons: list[int] = field(default_factory=list)


@dataclass
class _Fact:
    sort: Literal["project", "taste", "duty"]
    aspect: Aspect
    project: str
    person: str
    versions: list[_Version] = field(default_factory=list)


class _Composer:
    """Composes the events of a world: its facts, then what is said of them, then what is asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.start = to_micros(_START)
        self.end = self.start + world.days * DAY
        self.projects = named(NAMES["projects"], world.projects, "project")
        self.people = named(NAMES["people"], max(world.people, 1) * 2, "person")
        self.drafts: list[_Draft] = []
        self.facts = self._facts()
        self._state_facts()
        self._noise()
        order = sorted(range(len(self.drafts)), key=lambda index: self.drafts[index].at)
        self.ref = {draft: f"u{place}" for place, draft in enumerate(order, 1)}
        self.messages = [self._message(index) for index in order]

    # -- what is true -----------------------------------------------------------------------------------------

    def _facts(self) -> list[_Fact]:
        """Facts with the values that they take, each from a first day on."""
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
            times = [self._moment(day, rng) for day in days]
            value: str | None = None
            for at, until in zip(times, [*times[1:], self.end], strict=True):
                others = [other for other in fact.aspect.values if other != value]
                new = str(rng.choice(others))
                fact.versions.append(_Version(new, value, at, until))
                value = new
        return facts

    def _moment(self, day: int, rng: np.random.Generator) -> Micros:
        """A moment of the working day."""
        return self.start + day * DAY + 8 * HOUR + int(rng.random() * 9 * HOUR)

    # -- what is said -----------------------------------------------------------------------------------------

    def _state_facts(self) -> None:
        world, rng = self.world, generator(self.world.seed, "wording")
        forms = FORMS["project"]
        for fact in self.facts:
            for version in fact.versions:
                at = version.at
                if fact.sort == "project" and rng.random() < world.replies:
                    self._utter(fact, version, at, forms["asked-back"], rng, speaker=_AGENT)
                    stated = self._utter(
                        fact, version, at + 20 * _SECOND, forms["answers"], rng, speaker=fact.person
                    )
                else:
                    stated_first = version.old is None or rng.random() < 0.3
                    stating = FORMS[fact.sort]["plain" if stated_first else "updates"]
                    stated = self._utter(fact, version, at, stating, rng, speaker=fact.person)
                version.statements.append(stated)
                if fact.sort != "duty" and rng.random() < world.reasons:
                    why = self._utter(
                        fact, version, at + 45 * _SECOND, forms["reasons"], rng, speaker=fact.person
                    )
                    version.reasons.append(why)
                self._repeat(fact, version, rng)

    def _repeat(self, fact: _Fact, version: _Version, rng: np.random.Generator) -> None:
        """Say the value again while it holds: the same words, or others."""
        first, last = ((at - self.start) // DAY for at in (version.at, version.until))
        rolls = rng.random(max(0, int(last - first)))
        for offset, roll in enumerate(rolls):
            day = int(first) + offset
            if roll >= self.world.phase(day).repeats / 30:
                continue
            at = self._moment(day, rng)
            if not version.at < at < version.until:
                continue
            again = self._utter(
                fact, version, at, FORMS[fact.sort]["plain"], rng, speaker=fact.person
            )
            if rng.random() < 0.4:
                self.drafts[again].text = self.drafts[version.statements[0]].text
            version.statements.append(again)

    def _utter(
        self,
        fact: _Fact,
        version: _Version,
        at: Micros,
        forms: Sequence[str],
        rng: np.random.Generator,
        *,
        speaker: str,
    ) -> int:
        text = str(rng.choice(forms)).format(
            **self._filling(fact, version, str(rng.choice(fact.aspect.names)), rng)
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

    def _filling(
        self, fact: _Fact, version: _Version, name: str, rng: np.random.Generator
    ) -> dict[str, str]:
        return {
            "project": fact.project,
            "name": name,
            "value": version.value,
            "old": version.old or "before",
            "person": fact.person,
            "why": str(rng.choice(NAMES["whys"])),
        }

    def _noise(self) -> None:
        """Talk that answers nothing: mentions without a value, open questions, and life around the work."""
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
            moment = self._moment(int(day), rng)
            self.drafts.append(_Draft(moment, text, kind, fact.project, False, _USER, (), weight))

    def _message(self, index: int) -> MessageEvent:
        draft = self.drafts[index]
        return MessageEvent(
            at=draft.at,
            ref=self.ref[index],
            text=draft.text,
            kind=draft.kind,
            project=None if draft.everywhere else draft.project,
            session=self._session(draft.project, draft.at),
            speaker=draft.speaker,
            importance=round(draft.weight, 3),
            tags=draft.tags,
        )

    def _session(self, project: str, at: Micros) -> str:
        return f"{project} {(at - self.start) // DAY + 1}"

    # -- what is asked ----------------------------------------------------------------------------------------

    def questions(self) -> list[QuestionEvent]:
        """The questions, by time."""
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
        moments = sorted(self._moment(int(day), rng) for day in days)
        mood = generator(world.seed, "mood")
        level = dict(zip(self.projects, mood.uniform(0.15, 0.45, len(self.projects)), strict=True))
        questions: list[QuestionEvent] = []
        for at in moments:
            project = self.projects[int(rng.integers(len(self.projects)))]
            facts = tastes if tastes and rng.random() < 0.2 else by_project[project]
            # What is asked most is asked far more than the rest; which facts those are differs by project.
            known = [
                rank for rank, fact in enumerate(facts, 1) if self._is_known(fact.versions[0], at)
            ]
            if not known:
                continue
            need = 1.0 / np.array(known)
            fact = facts[int(rng.choice(known, p=need / need.sum())) - 1]
            about = _ABOUT[int(rng.choice(len(_ABOUT), p=np.array(world.about) / sum(world.about)))]
            text, useful = self._question(fact, about, project, at, rng)
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

    def _is_known(self, version: _Version, at: Micros) -> bool:
        """Whether a value has been stated before this time."""
        return self.drafts[version.statements[0]].at < at

    def _question(
        self, fact: _Fact, about: str, project: str, at: Micros, rng: np.random.Generator
    ) -> tuple[str, Mapping[str, float]]:
        """The words of a question about a fact that is known, and what is useful for it."""
        known = [version for version in fact.versions if self._is_known(version, at)]
        if (about == "before" and len(known) < 2) or (about == "why" and not known[-1].reasons):
            about = "now"
        name = fact.aspect.names[0]
        if rng.random() < self.world.synonyms:
            name = str(rng.choice(fact.aspect.names[1:]))
        form = str(rng.choice(FORMS[fact.sort][about]))
        meant = known[-2] if about == "before" else known[-1]
        filling = self._filling(fact, meant, name, rng) | {"project": project}
        return form.format(**filling), self._useful(known, about, at)

    def _useful(self, known: list[_Version], about: str, at: Micros) -> dict[str, float]:
        """1 for the newest statement of what is asked for, less for repetitions and reasons, 0 for what is stale."""
        grades: dict[str, float] = {}

        def grade(drafts: list[int], newest: float, others: float) -> None:
            earlier = sorted(
                (index for index in drafts if self.drafts[index].at < at),
                key=lambda i: self.drafts[i].at,
            )
            for index in earlier:
                grades[self.ref[index]] = newest if index == earlier[-1] else others

        if about == "before":
            grade(known[-2].statements, 1.0, 0.6)
            grade(known[-1].statements, 0.2, 0.1)
        elif about == "why":
            grade(known[-1].reasons, 1.0, 1.0)
            grade(known[-1].statements, 0.4, 0.2)
        else:
            grade(known[-1].statements, 1.0, 0.6)
            grade(known[-1].reasons, 0.3, 0.3)
        return grades


# Worlds with a purpose: what an honest tool must find, must not be misled by, and must not claim.


_PROBES = "(setting limit 5) (setting probe-rate 1) (setting probe-depth 95) (setting probe-floor 0.5) (setting probes 8)"

PROBING = f"""(pack probing "The default pack: five memories, and eight probes from all its pool." :inherits memlab)
{_PROBES}
"""

SURE = """(pack sure "The default pack, five memories, never a probe." :inherits memlab)
(setting limit 5) (setting probe-rate 0)
"""

HABIT = f"""(pack habit "What is near, and what is old and was often recalled." :inherits memlab)
{_PROBES}
(defpolicy recall-score [similarity lexical access age-days]
  (+ (min-max similarity) (min-max lexical) (* 0.5 (min-max access)) (* 1.5 (min-max age-days))))
"""

FRESH = f"""(pack fresh "What is near, and what is new." :inherits memlab)
{_PROBES}
(defpolicy recall-score [similarity lexical age-days]
  (- (+ (min-max similarity) (min-max lexical)) (* 0.8 (min-max age-days))))
"""

_DIFFERS = World(
    "differs",
    "A quarter of work in eight projects, with probes in every recall. The packs differ by much, and an offline "
    "ranking of them from the log of one must find the order.",
    seed=11,
    phases=(Phase(0.4, change_days=45.0), Phase(1.0, change_days=30.0)),
    synonyms=0.2,
    packs=((0, PROBING),),
)

_REVERSES = World(
    "reverses",
    "A quiet half in which nothing changes and everything is said again and again, then a hectic half in which values "
    "last a week, among three times the noise. The pack of habit was live in the first, the fresh one in the second: "
    "habit earned more a recall, and fresh is the better one. Comparing what each earned takes the wrong one; weighing "
    "all decisions by their propensities does not.",
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

_SAME = World(
    "same",
    "The user is as pleased with one memory as with another; only the hour and the project matter. Every policy that "
    "shows five is worth the same, so an honest tool declares no winner.",
    seed=37,
    grading="alike",
    packs=((0, PROBING),),
)

WORLDS: Mapping[str, World] = MappingProxyType(
    {world.name: world for world in (_DIFFERS, _REVERSES, _SAME)}
)
"""Seeded worlds by name; ``WORLDS[name].doc`` says what each one is for."""
