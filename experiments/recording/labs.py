"""Build the labs of the public part with public verbs, a manual clock and fixed seeds."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import memlab
from memlab.io.ingest import LabelledConversation, conversation, read_locomo
from memlab.science.simulation import MessageEvent, QuestionEvent, World, live
from memlab.ui.demo import CONVERSATION
from tests.campaigns.living.verbs import VERBS
from tests.campaigns.living.words import Words, letters

__all__ = ["LABS", "Built", "ask_labelled"]


@dataclass(frozen=True)
class Built:
    """A built lab: the task of its context, ids to purge, and additional values to record."""

    lab: memlab.Lab
    task: str
    purge: tuple[int, ...]
    extra: dict[str, Any]
    session: str | None = None


Build = Callable[[str, Path], Iterator[Built]]
LABS: dict[str, Callable[[str, Path], Any]] = {}
"""Builders by name: context managers that take a pack and a folder, and return the lab."""


def _register(build: Build) -> Build:
    """Register a builder under its name."""
    LABS[build.__name__] = contextmanager(build)
    return build


def ask_labelled(lab: memlab.Lab, labelled: LabelledConversation, every: int) -> None:
    """Recall every ``every``-th question; evidence is a success, the best other result a failure."""
    for question in labelled.questions[::every]:
        hits = lab.recall(question.text, project=labelled.conversation.name, explore=True)
        judged = [(hit, "success") for hit in hits if hit.ref in question.evidence]
        judged += [(hit, "fail") for hit in hits if hit.ref not in question.evidence][:1]
        lab.feedback([{"memory": hit, "outcome": outcome} for hit, outcome in judged])


# -- the bundled conversation -----------------------------------------------------------------------------------------


@_register
def demo(pack: str, folder: Path) -> Iterator[Built]:
    """Yield the demo's conversation with half of its questions and feedback by evidence."""
    (labelled,) = read_locomo(CONVERSATION)
    talk = labelled.conversation
    clock = memlab.ManualClock(talk.end + timedelta(days=1))
    with memlab.open(pack=pack, clock=clock) as lab:
        conversation(lab, talk)
        ask_labelled(lab, labelled, 2)
        clock.advance(days=20)
        done = lab.upkeep.maintain(progress=False)
        yield Built(
            lab,
            "Plan a morning with Noor at the river",
            (4, 17),
            {"upkeep": done.counts.to_dicts()},
        )


# -- a random life ----------------------------------------------------------------------------------------------------

_STEPS = (
    "remember remember fact remember_many recall link entity hear feedback edit fact remember cluster recall "
    "agent verify merge_entities load remember conversation deprecate maintain consolidate recall restore forget "
    "split_entity fact retract purge remember_many unconsolidate install recall feedback backup refine "
    "delete rollback pin close_gap edit snapshot switch run mirror recall verify look remember agent load recall "
    "feedback"
)
"""The verbs of one run in a fixed order, so that a new verb elsewhere does not change the run."""


@_register
def life(pack: str, folder: Path) -> Iterator[Built]:
    """Yield a lab on disk after random verbs of ``tests/campaigns/lives.py``; refusals are recorded."""
    words, clock = Words(random.Random("golden")), memlab.ManualClock("2026-03-01T12:00:00")
    files = folder / "files"
    files.mkdir()
    steps = []
    with memlab.open(folder / "lab.memlab", pack=pack, embedder=letters, clock=clock) as lab:
        for number, name in enumerate(_STEPS.split()):
            dice = random.Random(f"golden:{number}")
            clock.advance(hours=dice.choice([0, 1, 30]))
            try:
                VERBS[name][1](lab, dice, words, files)
                steps.append(name)
            except memlab.MemlabError as error:
                steps.append(f"{name}: {type(error).__name__} {error}")
            lab.graph.link_waiting()
        results = {
            "steps": [step.replace(str(folder), "FOLDER") for step in steps],
            "log": lab.log.to_dicts(),
        }
        present = lab.memories.filter(~lab.memories["status"].is_in(["purged"]))["id"].to_list()
        yield Built(lab, words.text(random.Random("task")), tuple(present[:2]), results)


# -- imports ----------------------------------------------------------------------------------------------------------

_TOLD = (
    ("Ada", "I live in Lisbon with two cats and a very old piano."),
    ("Ben", "I live in Bergen, ten minutes from the harbour."),
    ("Ada", "The release goes out every Tuesday at nine."),
    ("Ada", "We deploy with blue-green switches, never in place."),
    ("Ben", "My favourite colour is green."),
    ("Ada", "I prefer tabs over spaces in every project."),
    ("Ben", "The staging database runs on port 5433."),
    ("Ada", "I moved to Porto last week; Lisbon was too loud."),
    ("Ben", "The staging database runs on port 6433 now, not 5433."),
    ("Ada", "The release goes out every Tuesday at nine."),
    ("Ben", "Do you still live in Lisbon?"),
    ("Ada", "See you for now, and thanks for the soup!"),
    ("Ben", "I no longer like green; my favourite colour is blue."),
    ("Ada", "The release goes out every Thursday at nine from March on."),
    ("Ben", "I wish we had a dog."),
    ("Ada", "I am allergic to peanuts, so no satay for me."),
    ("Ben", "Tests must pass on Python 3.11 and 3.12 before a merge."),
    ("Ada", "Tests must pass on Python 3.12 and 3.13 before a merge."),
    ("Ben", 'Carla said "I live in Rome" in her talk.'),
    ("Ada", "Use src/auth/token.py for the refresh, the old helper is gone."),
    ("Ben", "The budget of the spring fair is 1,450.50 euros."),
    ("Ada", "The budget of the spring fair is 1,620.00 euros after the vote."),
    ("Ben", "I work as a nurse at the Haukeland hospital."),
    ("Ada", "Ben works nights in April."),
    ("Ben", "I quit the hospital and started as a carpenter."),
    ("Ada", "Lunch is at half past twelve on the roof."),
)
_ASKED = (
    ("Where does Ada live?", (8,)),
    ("When does the release go out?", (14, 3)),
    ("Which port has the staging database?", (9,)),
    ("What is Ben's favourite colour?", (13,)),
    ("Which versions of Python are tested?", (18, 17)),
    ("How much may the spring fair cost?", (22,)),
    ("What does Ben do for a living?", (25, 23)),
    ("What can Ada not eat?", (16,)),
    ("Which file refreshes tokens?", (20,)),
    ("Who won the chess tournament?", ()),
)


def _ask(lab: memlab.Lab, clock: memlab.ManualClock) -> None:
    for text, wanted in _ASKED:
        clock.advance(hours=5)
        hits = lab.recall(text, explore=True)
        useful = {_TOLD[number - 1][1] for number in wanted}
        for hit in hits[:4]:
            lab.feedback(hit, "success" if hit.text in useful else "fail")


@_register
def table(pack: str, folder: Path) -> Iterator[Built]:
    """Yield a lab of a CSV file with conflicting, repeated and quoting notes, linked while read."""
    clock = memlab.ManualClock("2026-06-01T08:00:00")
    start = datetime(2026, 2, 1, 9, tzinfo=UTC)
    path = folder / "notes.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["body", "author", "created_at", "topic", "kind"])
        for number, (speaker, text) in enumerate(_TOLD):
            kind = ["note", "decision", "preference"][number % 3]
            rows.writerow(
                [
                    text,
                    speaker,
                    (start + timedelta(days=3 * number)).isoformat(),
                    f"team-{number % 2}",
                    kind,
                ]
            )
    with memlab.open(pack=pack, clock=clock) as lab:
        columns = {
            "text": "body",
            "speaker": "author",
            "at": "created_at",
            "project": "topic",
            "kind": None,
        }
        loaded = lab.load(path, columns=columns, linking="now", progress=False)
        _ask(lab, clock)
        edited = lab.edit(
            4, text="We deploy with canaries, never in place.", reason="decided in May"
        )
        extra = {
            "loaded": loaded.frame.to_dicts(),
            "guessed": str(loaded.guessed),
            "edited": edited.id,
        }
        yield Built(lab, "Prepare the release of the team", (6, 12), extra)


@_register
def chat(pack: str, folder: Path) -> Iterator[Built]:
    """Yield a lab of a ChatGPT export with extraction; its statements are observed one by one."""
    start = datetime(2026, 2, 1, 9, tzinfo=UTC).timestamp()
    talks = []
    for day in range(3):
        tree: dict[str, Any] = {"root": {"id": "root", "parent": None, "message": None}}
        last = "root"
        for number, (_, text) in enumerate(_TOLD[day::3]):
            for role, words in (("user", text), ("assistant", f"Noted. {_TOLD[number][1]}")):
                key = f"{role}-{day}-{number}"
                content = {"content_type": "text", "parts": [words]}
                at = start + 86400 * (7 * day + number)
                message = {
                    "id": key,
                    "author": {"role": role},
                    "create_time": at,
                    "content": content,
                }
                tree[key] = {"id": key, "parent": last, "message": message}
                last = key
        talks.append(
            {
                "title": f"Day {day}",
                "conversation_id": f"c-{day}",
                "mapping": tree,
                "current_node": last,
            }
        )
    path = folder / "conversations.json"
    path.write_text(json.dumps(talks))
    clock = memlab.ManualClock("2026-06-01T08:00:00")
    with memlab.open(pack=pack, clock=clock) as lab:
        loaded = lab.load(path, project="assistant", progress=False)
        messages = [{"role": "user", "content": text} for _, text in _TOLD]
        extracted = lab.agents.extract(messages, agent="assistant", project="assistant")
        committed = lab.agents.commit(extracted, linking="now")
        admitted = []
        for _, text in _TOLD:
            clock.advance(hours=2)
            observed = lab.agents.observe(text, project="assistant", linking="now")
            admitted.append([observed.memory and observed.memory.id, str(observed.admission)])
        _ask(lab, clock)
        extra = {
            "loaded": loaded.frame.to_dicts(),
            "extracted": extracted.frame.to_dicts(),
            "committed": committed.outcomes.to_dicts(),
            "admitted": admitted,
        }
        yield Built(lab, "Where do I live and what may I eat?", (1, 54), extra)


# -- generated labs ---------------------------------------------------------------------------------------------------

_WORLD = World("golden", seed=5, days=20, projects=3, messages_per_day=6, questions_per_day=2)


@_register
def simulated(pack: str, folder: Path) -> Iterator[Built]:
    """Yield twenty simulated days with probes, late feedback, weekly maintenance and a challenger."""
    with live(
        _WORLD, pack=pack, challengers=["workbench" if pack == "memlab" else "memlab"], every_days=7
    ) as lived:
        yield Built(
            lived.lab, "Plan the launch of Otter", (3, 5), {"earned": lived.earned().to_dicts()}
        )


_AGENTS = (
    ("tutor", "alpha", "member"),
    ("coder", "alpha", "member"),
    ("chief", None, "owner"),
    ("guest", "beta", "reader"),
)
_VIEWERS = ("agent:tutor", "agent:coder", "agent:guest", "user")


@_register
def agents(pack: str, folder: Path) -> Iterator[Built]:
    """Yield four agents of three roles in two projects, with their rights and visible memories."""
    events = World(
        "crew", seed=9, days=12, projects=2, messages_per_day=6, questions_per_day=2
    ).events()
    clock = memlab.ManualClock(events[0].at)
    done: list[str] = []
    with memlab.open(pack=pack, clock=clock) as lab:
        crew = [
            lab.agents(name, project=project, session=f"{name}-1", role=role)
            for name, project, role in _AGENTS
        ]

        def attempt(what: str, verb: Callable[[], Any]) -> Any:
            """Call a verb, and record its result or refusal."""
            try:
                result = verb()
            except memlab.MemlabError as error:
                done.append(f"{what}: {type(error).__name__} {error}")
                return None
            finally:
                lab.graph.link_waiting()
            done.append(f"{what}: {getattr(result, 'id', None) or getattr(result, 'ids', None)}")
            return result

        for number, event in enumerate(events):
            clock.set(event.at)
            agent = crew[number % len(crew)]
            if isinstance(event, QuestionEvent):
                hits = attempt(
                    f"{agent.name} recalls", lambda view=agent, text=event.text: view.recall(text)
                )
                if hits:
                    outcome = "success" if number % 3 else "fail"
                    attempt(
                        f"{agent.name} judges",
                        lambda view=agent, hit=hits[0], how=outcome: view.feedback(hit, how),
                    )
            elif isinstance(event, MessageEvent):
                fields: dict[str, Any] = {"kind": event.kind, "importance": event.importance}
                if number % 5 == 0:
                    fields |= {
                        "subject": event.speaker or "user",
                        "predicate": "said",
                        "object": event.tags[0] if event.tags else "it",
                    }
                if number % 7 == 0:
                    fields["visibility"] = "project"
                attempt(
                    f"{agent.name} remembers",
                    lambda view=agent, text=event.text, more=fields: view.remember(text, **more),
                )
        lab.agents.observe(
            "I prefer short answers in the morning.",
            creator="user",
            visibility="private",
            linking="now",
        )
        for number in range(1, 13):
            for agent in crew[:2]:
                attempt(
                    f"{agent.name} edits {number}",
                    lambda view=agent, at=number: view.edit(at, importance=0.7),
                )
            attempt(f"guest forgets {number}", lambda at=number: crew[3].forget(at))
        attempt("chief forgets", lambda: crew[2].forget([2, 5]))
        lab.agents.switch_off("beta", reason="an audit")
        attempt("guest recalls while off", lambda: crew[3].recall("launch"))
        attempt("user remembers while off", lambda: lab.remember("Beta waits.", project="beta"))
        lab.agents.switch_on("beta")
        visible = {viewer: lab.at(viewer=viewer).memories["id"].to_list() for viewer in _VIEWERS}
        contexts = {agent.name: agent.context("Plan the launch", log=False).text for agent in crew}
        extra = {
            "done": done,
            "seen": visible,
            "contexts": contexts,
            "relationships": lab.agents.relationships().to_dicts(),
        }
        yield Built(lab, "Plan the launch", (7, 8), extra)
