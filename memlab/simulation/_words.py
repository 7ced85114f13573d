"""The words of a simulated life: what can be decided, liked, looked after, and talked about, and how it is said.

Every sentence is a template over these; each fact can be stated, repeated and asked about in several wordings, and
several facts share their values, so that neither words nor vectors alone give an answer away.
"""

from __future__ import annotations

from dataclasses import dataclass

from memlab.errors import InputError

__all__ = [
    "ANSWERS",
    "ASIDES",
    "ASKED_BACK",
    "ASPECTS",
    "DUTIES",
    "DUTY_PLAIN",
    "DUTY_QUESTIONS",
    "DUTY_UPDATES",
    "MENTIONS",
    "PEOPLE",
    "PLACES",
    "PLAIN",
    "PROJECTS",
    "QUESTIONS",
    "REASONS",
    "TASTES",
    "TASTE_PLAIN",
    "TASTE_QUESTIONS",
    "TASTE_UPDATES",
    "UPDATES",
    "WHYS",
    "WONDERS",
    "Aspect",
    "named",
]


@dataclass(frozen=True)
class Aspect:
    """Something that has one value at a time. ``names`` are synonyms, ``values`` what it can be."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    kind: str


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "the first of the month", "every second Thursday")
_PLACES = ("Lisbon", "Utrecht", "Tallinn", "Graz", "Leeds", "Bergen", "Bologna", "Gdansk")

ASPECTS = (
    Aspect(("deploy day", "shipping day", "release slot"), _DAYS, "convention"),
    Aspect(("planning meeting", "planning slot", "weekly sync"), _DAYS, "convention"),
    Aspect(("review day", "slot for code reviews", "day for reading each other's work"), _DAYS, "convention"),
    Aspect(("database", "data store", "home of the records"),
           ("Postgres", "SQLite", "DuckDB", "MariaDB", "CockroachDB", "plain Parquet files"), "decision"),
    Aspect(("message queue", "event broker", "transport between services"),
           ("RabbitMQ", "Kafka", "NATS", "Redis streams", "a table that is polled"), "decision"),
    Aspect(("hosting region", "data centre", "location of the servers"), _PLACES, "decision"),
    Aspect(("pilot city", "first town to try it", "place for the trial"), _PLACES, "decision"),
    Aspect(("test command", "checking routine", "command before a commit"),
           ("make check", "pytest -x", "tox -e fast", "just verify", "npm run spec"), "convention"),
    Aspect(("indentation", "whitespace style", "shape of indents"),
           ("tabs", "two spaces", "four spaces", "whatever the formatter says"), "convention"),
    Aspect(("accent colour", "main colour", "shade of the buttons"),
           ("teal", "rust red", "mustard", "deep violet", "slate grey", "moss green"), "decision"),
    Aspect(("launch date", "go-live", "public opening"),
           ("mid April", "the second week of May", "early June", "after the summer", "late September"), "decision"),
    Aspect(("budget", "spending limit", "ceiling on costs"),
           ("twelve thousand", "thirty thousand", "eighty thousand", "a quarter of a million"), "context"),
    Aspect(("log retention", "lifetime of logs", "deletion period of logs"),
           ("seven days", "thirty days", "ninety days", "a full year"), "decision"),
    Aspect(("translation supplier", "agency for translations", "localisation partner"),
           ("Lingua North", "Babelwerk", "Two Tongues", "Parla Studio"), "decision"),
    Aspect(("error budget", "allowed downtime", "tolerated outage"),
           ("ten minutes a month", "an hour a quarter", "half a day a year", "none at all"), "convention"),
    Aspect(("branch naming", "name scheme for branches", "prefix of branches"),
           ("feature slash ticket", "initials and a verb", "date first", "only the ticket number"), "convention"),
)  # fmt: skip

TASTES = (
    Aspect(("coffee", "hot drink in the morning", "order at the café"),
           ("a flat white", "black filter coffee", "green tea", "decaf with oat milk"), "preference"),
    Aspect(("tone of e-mails", "style of my letters", "client voice"),
           ("short and dry", "warm with a greeting", "formal", "bullet points only"), "preference"),
    Aspect(("music at work", "sound while coding", "playlist for focus"),
           ("string quartets", "brown noise", "Afrobeat", "nothing, silence"), "preference"),
    Aspect(("editor", "typing tool", "coding environment"),
           ("Neovim", "Helix", "VS Code", "Emacs with evil keys"), "preference"),
    Aspect(("seat on trains", "place in the carriage", "travelling spot"),
           ("the window facing forward", "the aisle", "the quiet car", "the table seats"), "preference"),
    Aspect(("length of answers", "verbosity", "size of summaries"),
           ("three lines", "one paragraph", "as long as it takes", "a table first"), "preference"),
    Aspect(("lunch", "midday meal", "food at noon"),
           ("ramen", "a big salad", "soup and bread", "leftovers", "nothing before two"), "preference"),
    Aspect(("time for calls", "talking hours", "slot for phone calls"),
           ("before ten", "after four", "only on Wednesdays", "right after lunch"), "preference"),
)  # fmt: skip

DUTIES = Aspect(
    ("duty", "task", "job"),
    ("invoices", "the mobile app", "accessibility", "onboarding", "the search index", "payments", "translations",
     "security reviews", "the data pipeline", "the design system"),
    "fact",
)  # fmt: skip

PEOPLE = (
    "Noor", "Ilse", "Tomas", "Adaeze", "Mirko", "Yuki", "Salma", "Piet", "Ines", "Kofi", "Greta", "Emre", "Lucia",
    "Bogdan", "Aino", "Rafael", "Zofia", "Hamid", "Clara", "Otto", "Leila", "Stefan", "Maja", "Joao",
)  # fmt: skip

PROJECTS = (
    "Lantern", "Quill", "Otter", "Harbour", "Juniper", "Cobalt", "Meadow", "Falcon", "Biscuit", "Tundra", "Saffron",
    "Pebble", "Orchid", "Comet", "Walnut", "Glacier", "Marble", "Thistle", "Beacon", "Poppy", "Raven", "Cinder",
    "Willow", "Anchor", "Maple", "Zephyr", "Copper", "Heron", "Lichen", "Prism", "Delta", "Ember",
)  # fmt: skip

PLAIN = (
    "For {project} the {name} is {value}.",
    "{project}: we settled on {value} for the {name}.",
    "Note that {value} is the {name} of {project}.",
    "The {name} will be {value}.",
    "We agreed on {value} as {name}, {project} team included.",
)
UPDATES = (
    "Change of plan: the {name} is now {value}, no longer {old}.",
    "{project} moves from {old} to {value} as {name}.",
    "Forget what I said, take {value} for the {name}.",
    "From today on {value} is the {name} of {project}.",
)
ASKED_BACK = (
    "Which {name} shall I note for {project}?",
    "What did you decide about the {name}?",
    "And the {name}, where does that stand?",
)
ANSWERS = ("{value}.", "Make it {value}, please.", "It will be {value} after all.", "I would say {value}.")
REASONS = (
    "The {name} is what it is because {why}.",
    "Why that {name}? Mostly because {why}.",
    "{project} chose its {name} since {why}.",
)
WHYS = (
    "the client insisted", "it was the cheapest by far", "nobody knew the alternative", "legal asked for it",
    "the last incident taught us so", "it saves an hour every week", "the team voted for it",
)  # fmt: skip
MENTIONS = (
    "Spent an hour with {person} on the {name} of {project}.",
    "The {name} came up again in the meeting, nothing was decided.",
    "{person} sent a long document on the {name}, I have not read it.",
    "There was a talk about {name} choices at the conference.",
    "Someone should write a page about the {name} for {project}.",
)
WONDERS = (
    "Did we ever decide the {name} of {project}?",
    "Is the {name} still open?",
    "Who has the last word on the {name}?",
)
QUESTIONS = {
    "now": (
        "What is the {name} of {project}?",
        "Remind me of the {name}.",
        "Which {name} did we choose?",
        "What holds for the {name} now?",
        "I forgot the {name}, what was it?",
    ),
    "before": (
        "What was the {name} of {project} before the change?",
        "Which {name} did we have earlier?",
        "What did the {name} use to be?",
    ),
    "why": (
        "Why did we choose that {name}?",
        "What was the reason for the {name} of {project}?",
        "What speaks for our {name}?",
    ),
}
TASTE_PLAIN = (
    "I like {value} as my {name}.",
    "For {name}: {value}, always.",
    "My {name} is {value}.",
    "{value} is what I want for the {name}.",
)
TASTE_UPDATES = (
    "I am done with {old}, from now on {value} for {name}.",
    "These days my {name} is {value}.",
    "Switched from {old} to {value}, talking about {name}.",
)
TASTE_QUESTIONS = {
    "now": ("What do I like for {name}?", "How do I want the {name}?", "Which {name} do I prefer these days?"),
    "before": ("Which {name} did I like before?", "What was my old {name}?"),
    "why": ("Why do I prefer that {name}?", "What made me pick this {name}?"),
}
DUTY_PLAIN = ("I look after {value} on {project}.", "My part is {value}.", "Ask me about {value}.")
DUTY_UPDATES = ("I handed over {old} and took {value}.", "I no longer do {old}, it is {value} now.")
DUTY_QUESTIONS = {
    "now": ("What is {person} working on?", "Who looks after {value}?", "Whom do I ask about {value}?"),
    "before": ("What did {person} do before?", "What was the earlier {name} of {person}?"),
    "why": ("Why does {person} do {value}?",),
}
ASIDES = (
    "{person} fixed the flaky build of {project} this morning.",
    "Long day, the train stood still near {place}.",
    "Merged the pull request by {person} after two rounds.",
    "Lunch with {person}, we talked about {place} and bicycles.",
    "The dashboard of {project} showed a spike around {value}.",
    "Updated the dependencies, nothing broke.",
    "{person} is learning to bake, brought bread for everyone.",
    "Cleaned up old tickets of {project}, closed a dozen.",
    "Rain all week, {place} must be nicer.",
    "Wrote the monthly report for {project}, sent it to {person}.",
    "The office heating failed again and we worked in coats.",
    "Paired with {person} on a bug in the parser until five.",
)
PLACES = _PLACES


def named(pool: tuple[str, ...], number: int, what: str) -> tuple[str, ...]:
    """The first ``number`` names of a pool, numbered where it runs out: Lantern, ..., Lantern 2.

    >>> named(("Ida", "Bo"), 3, "person")
    ('Ida', 'Bo', 'Ida 2')
    """
    if number < 1:
        raise InputError(f"A world needs at least one {what}, not {number}.")
    rounds = range(number)
    return tuple(
        pool[index % len(pool)] + (f" {index // len(pool) + 1}" if index >= len(pool) else "") for index in rounds
    )
