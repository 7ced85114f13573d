"""Statements that say that a value is over, has moved or was set again, and statements that stay."""

import random
import re

import pytest

import memlab
from memlab.subjects.linking import corrections
from memlab.subjects.reading.denials import (
    _DENIED,
    _VALUE,
    ends_value,
    moves_or_sets,
    replaces_named,
    reports_change,
)

RETIRED = [
    ("The release branch is called stable.", "We renamed the release branch: it is main now, no longer stable."),
    ("Our minimum Python is 3.10.", "We raised the minimum to 3.11, forget 3.10."),
    ("Run the tests with tox.", "We no longer use tox; run the tests with nox instead."),
    ("The config lives in setup.cfg.", "The config moved to pyproject.toml; setup.cfg is gone."),
    ("Use `make docs` to build the docs.", "Forget `make docs`: the docs are built with `nox -s docs` now."),
    ("Variables are read by load_env in app/util.py", "load_env moved to app/env.py"),
    ("We test 3.8 (requires-python >=3.8)", "requires-python is >=3.9 now"),
    ("The proxy option stays, with a warning", "1.0 drops the proxy option, no more warnings"),
    ("The suite is run with scripts/test (coverage)", "The scripts are gone: run the suite with nox"),
    ("CI runs on Python 3.9.", "CI now runs on Python 3.12."),
]  # fmt: skip
KEPT = [
    ("Never force-push to main.", "We renamed the release branch: it is main now, no longer stable."),
    ("The mascot of the project is an owl.", "The logo is no longer an owl."),
    ("Sign commits with GPG.", "We renamed GPG_KEY to SIGNING_KEY in CI."),
    ("The cache expires after 10 minutes.", "The worker pool has 30 threads now."),
    ("The user lives in Rome", "The user has moved to four spaces"),
    ("Use tox in CI.", "Should we no longer use tox?"),
    ("Use tox in CI.", "If we no longer used tox, CI would be faster."),
    ("The tests live in tests/old", "The docs moved to docs/new"),
    ("max_connections is 100", "max_keepalive is 20 now"),
]  # fmt: skip


def remember(old, new, **fields):
    lab = memlab.open()
    lab.remember(old, kind="convention", at="2026-01-01", **fields)
    lab.remember(new, kind="convention", at="2026-02-01", **fields)
    return lab.memories["status"].to_list()


@pytest.mark.parametrize(("old", "new"), RETIRED)
def test_a_statement_that_was_corrected_is_retired(old, new):
    assert remember(old, new) == ["superseded", "active"]


@pytest.mark.parametrize(("old", "new"), KEPT)
def test_another_statement_stays(old, new):
    assert remember(old, new) == ["active", "active"]


@pytest.mark.xfail(reason="a denial with a narrower scope is read as a denial", strict=True)
def test_a_narrower_denial_ends_nothing():
    old, new = "Run the slow tests before a release.", "We no longer run the slow tests in CI."
    assert remember(old, new) == ["active", "active"]


@pytest.mark.parametrize(("old", "new"), RETIRED)
def test_the_order_of_storing_does_not_matter(old, new):
    lab = memlab.open()
    lab.remember(new, kind="convention", at="2026-02-01")
    lab.remember(old, kind="convention", at="2026-01-01")
    assert lab.memories["status"].to_list() == ["active", "superseded"]


@pytest.mark.long
def test_turns_other_projects_and_statements_with_more_confidence_stay():
    old, new = RETIRED[0]
    lab = memlab.open()
    lab.remember(old, kind="turn", session="s")
    lab.remember(old, kind="convention", project="a")
    lab.remember(old, kind="convention", project="b", confidence=0.9)
    lab.remember(new, kind="convention", project="b", confidence=0.5)
    assert lab.memories["status"].unique().to_list() == ["active"]


def test_linking_off_keeps_both():
    old, new = RETIRED[0]
    assert remember(old, new, linking="off") == ["active", "active"]


@pytest.mark.long
@pytest.mark.parametrize("unit", ["x", "a.", "@", "a-", "a_"])
def test_a_long_run_without_spaces_names_no_value(unit):
    # A quadratic search would take minutes here.
    run = unit * 100_000
    assert not reports_change(run)
    assert not moves_or_sets(run, run)
    assert ends_value(f"{run} Forget `make docs`", "Use `make docs` to build")


# Sentences of people in chats and at work; who is away for a time ends nothing.
@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("I was out walking when I came across a cool rainbow sidewalk", "I went to a parade"),
        ("Ana is out today, ask Ben", "Ana reviews all migrations"),
        ("Priya was off last week so nothing moved", "Priya owns the billing service"),
        ("Tom is gone until Monday", "Tom approves releases"),
        ("CI was out for an hour, it came back", "CI runs on every push"),
    ],
)
def test_who_is_away_for_a_time_ends_nothing(new, old):
    assert not ends_value(new, old)
    assert not replaces_named(new, old)


def test_what_is_gone_ends():
    assert replaces_named("Jenkins is gone for good", "Jenkins builds the nightly")
    assert replaces_named("we moved off Mailgun", "Mails go out with Mailgun")
    assert replaces_named(
        "flags are in packages/flags/all.ts now", "Flags are declared in `src/flags.ts`"
    )
    assert replaces_named("Jenkins is gone, we use Actions", "Jenkins builds the nightly")


def test_a_thing_that_got_another_number_place_or_end_is_replaced():
    # from transcripts of other writers
    old = "the main chunk may have 180 kB gzip, above this the size job in ci goes red"
    assert replaces_named("we bumped the size budget to 220 yesterday because of the map", old)
    new, old = (
        "Staging is on fly.io: fly deploy -c deploy/fly.toml",
        "Staging is deployed by hand: scp",
    )
    assert replaces_named(new, old, stated=True)
    assert not replaces_named(new, old)
    old = "Staging is deployed by pushing a tag stg-<date>, the pipeline listens to nothing else"
    assert replaces_named("No tags any more: a merge to main rolls out to staging", old)
    old = "we're on Mollie for cards, the sandbox key is in .env.payments"
    assert replaces_named("payments run through Adyen now, Mollie is cancelled", old)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        # entries of the changelogs of httpcore and watchdog
        (
            "Increase the allowable HTTP header size to 100kB. (#647)",
            "Fix proxy headers missing on HTTP forwarding. (#456)",
        ),
        (
            "Convert regexes of type ``str`` to ``list``. (`831 <https://github.com/gorakhargosh/watchdog/pull/831>`__)",
            "[bsd] Fixed flavors of FreeBSD detection (`#529 <https://github.com/gorakhargosh/watchdog/pull/529>`__)",
        ),
    ],
)
def test_numbers_of_issues_and_addresses_are_no_topic(new, old):
    assert not replaces_named(new, old, stated=True)


def test_two_common_words_of_long_texts_end_nothing():
    old = "I tried surfing for the first time. Even though I kept falling off, it taught me to keep trying."
    new = "Getting sponsors was difficult. I had to reach out and keep trying, but it paid off, and the time limit is gone."
    assert not ends_value(new, old)


def test_a_value_that_ends_is_superseded_whatever_the_comparison_says(monkeypatch):
    for name in ("ends_value", "reports_change"):
        monkeypatch.setattr(corrections, name, lambda *texts: True)
    lab = memlab.open()
    for text in (
        "surfing was exciting, I kept falling off",
        "getting sponsors was difficult but it paid off",
    ):
        lab.remember([{"text": text, "kind": "convention", "project": "web"}])
    assert lab.memories["superseded_by"].to_list() == [2, None]


# -- what a person's report hides from contexts ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        ("we got off sentry.io on monday", "the sentry.io project is called desk", {}),
        ("No .changeset files any more: the bot reads titles", "Add a changeset to each PR", {}),
        ("temurin-21 is on all machines now", "JAVA_HOME=/usr/lib/jvm/temurin-17-jdk passed", {"incident": True}),
        ("Node 20 is no longer needed for labels", "labels failed. It passed after `nvm use 20`", {"incident": True}),
        ("scrap the business with rounding every row", "each position gets rounded", {"same_files": True}),
        ("develop was deleted", "PRs go against develop, Tom tags", {"around": "Tom tags main"}),
        ("Malformed input exits with 65", "Malformed rows exit with 2", {"stated": True}),
    ],
)  # fmt: skip
def test_a_report_hides_what_it_replaces(new, old, fields):
    assert replaces_named(new, old, **fields)


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        ("scrap the business with rounding every row", "each position gets rounded", {}),
        ("develop was deleted", "PRs go against develop, Tom tags", {}),
        ("Malformed input exits with 65", "Malformed rows exit with 2", {}),
        ("step-3 is on all machines now", "step-2 is slow", {}),
        ("temurin-21 is on all machines now", "amd64 and temurin-21 are used", {}),
        ("We moved off tox", "`tox -e py` failed. It passed after `make venv`", {"incident": True}),
        ("json lines instead of csv", "the csv reader moved", {"same_files": True, "around": "the"}),
    ],
)  # fmt: skip
def test_a_report_about_another_thing_hides_nothing(new, old, fields):
    assert not replaces_named(new, old, **fields)


def hidden(*memories):
    lab = memlab.open()
    for day, fields in enumerate(memories, 1):
        lab.remember(project="web", at=f"2026-01-{day:02}", **{"kind": "context"} | fields)
    return lab.edges.filter(relation="updates")["target"].to_list()


@pytest.mark.long
def test_only_a_person_hides_statements_by_their_topic():
    old = {"text": "the gateway takes max 500 readings per batch"}
    new = {
        "text": "he bumped the batch cap of the gateway, 2000 since yesterday",
        "kind": "correction",
    }
    assert hidden(old, new) == [1]
    assert hidden(old, new | {"provenance": "inferred"}) == []
    assert hidden(old | {"session": "s"}, new | {"session": "s"}) == []


@pytest.mark.long
def test_a_report_is_compared_beyond_its_nearest_memories():
    others = [
        {"text": f"the gateway of hall {number} sends batches at night"} for number in range(40)
    ]
    old = {"text": "a gateway batch has at most 500 readings, so retries are cheap"}
    new = {"text": "batch cap of the gateway bumped, 2000 now", "kind": "correction"}
    lab = memlab.open()
    lab.remember([memory | {"kind": "context", "project": "web"} for memory in (old, *others)])
    lab.remember(project="web", **new)
    assert 1 in lab.edges.filter(relation="updates")["target"].to_list()


def test_a_report_hides_the_nearest_of_what_it_may_replace():
    job = {"text": "jobs/labels runs on Node 20, its canvas has no build for Node 22"}
    heap = {"text": "the console needs NODE_OPTIONS=--max-old-space-size=6144"}
    new = {
        "text": "jobs/labels needs no Node 20 since the new canvas, it runs on 22 now",
        "kind": "correction",
    }
    assert hidden(job, heap, new) == [1]


def test_paths_in_one_folder_are_not_one_thing():
    assert not replaces_named(
        "Texts of the desktop are in desktop/i18n/source.json now",
        "desktop/src/io/dxf.cpp imports DXF",
    )


@pytest.mark.long
def test_a_value_before_its_end_is_that_of_the_search_with_every_start_and_length():
    quick = _DENIED[1].pattern
    slow = re.compile(_VALUE + quick[quick.index("(?: (?:line") :], re.IGNORECASE)
    pieces = ["is over", "are gone", "was dead", "`", "@", ".", "/", "+", "-", ":", "a", "bc", "É"]
    pieces += [" line", "\n", *" " * 5, *[" is over"] * 3]
    rng, found = random.Random(1), 0
    for _ in range(20_000):
        text = "".join(rng.choices(pieces, k=rng.randrange(1, 14)))
        matches = [
            [(match.span(), match.span("value")) for match in pattern.finditer(text)]
            for pattern in (_DENIED[1], slow)
        ]
        assert matches[0] == matches[1], text
        found += len(matches[0])
    assert found > 5_000
