"""Acts of the workbench design, written from its description and the public reference alone."""

import json
import warnings

import memlab
import polars as pl
import pytest
from memlab.errors import InputError, MemoryOff, NotPermitted, UnknownName


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-02T09:00")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="workbench", clock=clock) as opened:
        yield opened


@pytest.fixture
def library(tmp_path):
    """The folder of a small Python project: loans and catalogue, tests, settings, instructions."""
    files = {
        "loans/__init__.py": '"""Who has borrowed what, and until when."""\n',
        "loans/dates.py": "from catalogue.books import shelf\n\n\ndef due(day):\n    return day + 21\n",
        "loans/fines.py": "def fine(days):\n    return 20 * days\n",
        "catalogue/__init__.py": '"""The books that there are."""\n',
        "catalogue/books.py": "def shelf(isbn):\n    return 'A3'\n",
        "catalogue/search.py": "def search(words):\n    return []\n",
        "tests/test_dates.py": "from loans.dates import due\n\n\ndef test_due():\n    assert due(1) == 22\n",
        "AGENTS.md": (
            "# For agents\n\n- Fines are whole cents, never floats.\n- Ask before touching the catalogue schema.\n"
        ),
        "README.md": "# Library\n\nLends books to the village.\n",
        "pyproject.toml": (
            '[project]\nname = "library"\nversion = "0.1"\ndependencies = ["fastapi>=0.110"]\n\n'
            '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n\n[tool.ruff]\nline-length = 100\n'
        ),
    }
    for name, text in files.items():
        path = tmp_path / "library" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "library"


def row(lab, memory):
    """The row of lab.memories of one id."""
    return lab.memories.filter(pl.col("id") == memory).row(0, named=True)


@pytest.mark.long
def test_01_a_folder_is_mapped_without_a_model_and_its_conventions_wait_for_review(lab, library):
    """A folder is scanned. Modules, framework, tests and test command are there, all shallow, and no memory yet.

    Design: "Cold start without a language model: walk the tree, group by folder, find frameworks in ...
    `pyproject.toml` ..., classify files, seed conventions from ... instruction files, shown for review".
    """
    found = lab.agents.modules.scan(library, project="library", progress=False)
    modules = {one["module"]: one for one in found.frame.to_dicts()}
    assert {"loans", "catalogue"} <= set(modules)
    assert "loans/dates.py" in modules["loans"]["files"]
    assert "tests/test_dates.py" in modules["loans"]["tests"]
    assert set(found.frame["confidence"]) == {"shallow"}
    assert any("fastapi" in name.lower() for name in found.frameworks)
    assert any("pytest" in command for command in found.commands["command"])
    assert any("whole cents" in text for text in found.conventions["text"])
    assert lab.memories.height == 0
    lab.remember(found.conventions)
    assert any("whole cents" in text for text in lab.memories["text"])


@pytest.mark.long
def test_02_sessions_make_a_module_better_known_and_what_an_agent_says_of_it_stays(lab, library):
    """One module is touched in three sessions, another by one memory, and described; the folder is scanned again.

    Design: "confidence: shallow = scan only, partial = classified or some files touched, mapped = several sessions",
    "files touched in sessions join modules, and confidence rises; an agent can update a module", "map coverage".
    """
    lab.agents.modules.scan(library, project="library", progress=False)
    first = lab.agents.modules.touch(["loans/fines.py"], project="library", session="mon")
    assert dict(first.frame.select("module", "confidence").rows())["loans"] == "partial"
    lab.agents.modules.touch(["loans/fines.py"], project="library", session="tue")
    lab.agents.modules.touch(["loans/dates.py"], project="library", session="wed")
    lab.remember(
        "search() returns nothing for words with umlauts, somebody forgot to fold them",
        kind="gotcha", project="library", session="mon", files=["catalogue/search.py"],
    )  # fmt: skip
    found = lab.agents.modules.map("library")
    known = dict(found.frame.select("module", "confidence").rows())
    assert known["loans"] == "mapped"
    assert known["catalogue"] == "partial"
    assert found.coverage == pytest.approx(list(known.values()).count("mapped") / len(known))
    lab.agents.modules.describe("loans", project="library", description="Lending, due dates and what lateness costs.")
    again = lab.agents.modules.scan(library, project="library", progress=False)
    described = dict(again.frame.select("module", "description").rows())
    assert "lateness costs" in described["loans"]


def test_03_a_score_is_nearness_freshness_and_use_and_use_counts_to_twenty(lab, clock):
    """A gotcha is asked for 25 times, then left alone for its half-life. The score rises to the cap and fades by half.

    Design: "0.6 cosine + 0.25 e^(-rate * days since access) + 0.15 min(access / 20, 1), rate = ln 2 / half-life",
    "gotcha and error-pattern 60"; "confidence from 0.5, grows with retrieval".
    """
    note = lab.remember("stripe fires the webhook twice, check the event id before booking a payment", kind="gotcha")
    assert row(lab, note.id)["confidence"] == pytest.approx(0.5)
    scores = [lab.recall("payment webhook from stripe booked twice")[0].score for _ in range(25)]
    for before, score in enumerate(scores):
        assert score == pytest.approx(scores[0] + 0.15 * min(before / 20, 1), abs=1e-4)
    assert 0.5 < row(lab, note.id)["confidence"] <= 1
    clock.advance(days=60)
    hits = lab.recall("payment webhook from stripe booked twice", log=False)
    assert hits[0].score == pytest.approx(0.6 * hits.frame["similarity"][0] + 0.25 * 0.5 + 0.15, abs=1e-4)


def test_04_each_kind_fades_at_its_own_pace(lab, clock):
    """One note of each kind is a month old. Its recency is that of the half-life of its kind.

    Design: "Half-life: convention, decision, dependency-relation, human-feedback, codebase-map never; preference 180;
    pr-* 90; gotcha and error-pattern 60; session-insight, task-outcome, codebase-discovery 30 days; context and
    environment-quirk 7".
    """
    notes = {
        "convention": ("log lines are json, one a line", None),
        "decision": ("we went with postgres over mongo", None),
        "dependency-relation": ("the importer needs the geocoder to be up", None),
        "human-feedback": ("Marta: please no more one-letter variables", None),
        "codebase-map": ("etl reads, core computes, web shows", None),
        "preference": ("Tomasz likes short pull requests", 180),
        "pr-review": ("PR 88 approved after two rounds", 90),
        "pr-finding": ("PR 91 leaks a file handle", 90),
        "pr-pattern": ("reviews here always ask for a changelog entry", 90),
        "pr-gotcha": ("rebasing PR 70 dropped the migration", 90),
        "gotcha": ("the date picker counts months from zero", 60),
        "error-pattern": ("KeyError 'geo' means that the cache is cold", 60),
        "session-insight": ("profiling first would have saved the afternoon", 30),
        "task-outcome": ("nightly export is back to four minutes", 30),
        "codebase-discovery": ("there are two retry helpers, use the newer", 30),
        "context": ("demo for the city council is on Friday", 7),
        "environment-quirk": ("the runner in Gdansk has no docker", 7),
    }
    lab.remember([{"text": text, "kind": kind} for kind, (text, _) in notes.items()], linking="off")
    clock.advance(days=30)
    frame = lab.recall("what do we know about this code base", limit=40, log=False).frame
    recency = dict(frame.select("kind", "recency").rows())
    assert set(recency) == set(notes)
    for kind, (_, half) in notes.items():
        assert recency[kind] == pytest.approx(1.0 if half is None else 0.5 ** (30 / half), abs=1e-3), kind


def test_05_after_eight_weeks_a_quirk_has_faded_and_conventions_and_pins_have_not(lab, clock):
    """Three notes on releases wait for eight weeks. Only the quirk, of seven days, has lost its freshness.

    Design: "context and environment-quirk 7", "convention ... never", "pinned counts as fresh".
    """
    rule = lab.remember("release notes go into CHANGELOG.md before anybody pushes the tag", kind="convention")
    quirk = lab.remember("release upload stalls on the office wifi, plug in the cable", kind="environment-quirk")
    held = lab.remember("Folake signs off each release this year, ping her first", kind="context", pinned=True)
    young = {hit.id: hit.score for hit in lab.recall("how do I make a release", log=False)}
    clock.advance(days=56)
    old = {hit.id: hit.score for hit in lab.recall("how do I make a release", log=False)}
    assert set(young) == set(old) == {rule.id, quirk.id, held.id}
    assert old[rule.id] == pytest.approx(young[rule.id], abs=1e-4)
    assert old[held.id] == pytest.approx(young[held.id], abs=1e-4)
    assert young[quirk.id] - old[quirk.id] == pytest.approx(0.25 * (1 - 0.5**8), abs=1e-3)


def test_06_the_second_place_goes_to_something_else_and_not_to_a_second_copy(clock):
    """Two notes say nearly the same of invoices and one says something else, a little farther off; that one is second.

    Design: "then MMR"; systems.txt: below a weight of .71 what is different and has four fifths of the score stands
    before a second copy. Vectors are given, as howto-bring-an-embedder.txt says.
    """
    vectors = {
        "overnight": (0.90, 0.436, 0.0),
        "night job": (0.88, 0.475, 0.0),
        "accountant": (0.80, -0.60, 0.0),
        "invoices go out": (1.0, 0.0, 0.0),
    }

    def given(texts):
        rows = [next((v for k, v in vectors.items() if k in text.lower()), (0.0, 0.0, 1.0)) for text in texts]
        return pl.DataFrame(rows, schema=dict.fromkeys("xyz", pl.Float64), orient="row").to_numpy()

    with memlab.open(pack="workbench", clock=clock, embedder=given) as lab:
        first, copy, different = lab.remember(
            [
                {"text": "invoices are sent overnight at two", "kind": "decision"},
                {"text": "a night job sends the invoices, two o'clock", "kind": "decision"},
                {"text": "the accountant checks each invoice by hand", "kind": "decision"},
            ],
            linking="off",
        ).ids
        hits = lab.recall("when do invoices go out?")
        assert list(hits.ids) == [first, different, copy]
        assert hits[0].score == pytest.approx(0.6 * 0.9 + 0.25, abs=0.01)


def test_07_what_was_learned_on_another_branch_waits_for_the_merge(lab):
    """A note of a feature branch does not come up on main; on its branch, and once main has it merged, it does.

    Design: "Branch: memories of another unmerged branch are not eligible"; reference-lab.txt: without branch "only
    what has no branch does", "name a merged branch as well".
    """
    everywhere = lab.remember("user sessions expire after thirty minutes", kind="decision", project="shop")
    branched = lab.remember(
        "user sessions are kept in redis here, not in cookies", kind="decision", project="shop", branch="redis-sessions"
    )
    ask = "where are user sessions kept"
    assert set(lab.recall(ask, project="shop").ids) == {everywhere.id}
    assert set(lab.recall(ask, project="shop", branch="main").ids) == {everywhere.id}
    assert set(lab.recall(ask, project="shop", branch="redis-sessions").ids) == {everywhere.id, branched.id}
    merged = lab.recall(ask, project="shop", branch=["main", "redis-sessions"])
    assert set(merged.ids) == {everywhere.id, branched.id}


def test_08_what_a_person_said_in_review_stands_before_what_a_tool_found(lab):
    """Human feedback and a finding of a pull request say alike things. The feedback is first, with a quarter more.

    Design: "human-feedback (highest weight)"; systems.txt: "human-feedback scores a quarter more".
    """
    said = lab.remember("Priya: stop swallowing exceptions in the sync worker", kind="human-feedback", project="crm")
    found = lab.remember(
        "bot: the sync worker is swallowing exceptions", kind="pr-finding", project="crm", linking="off"
    )
    hits = lab.recall("swallowing exceptions in the sync worker", project="crm")
    assert list(hits.ids) == [said.id, found.id]
    near = dict(hits.frame.select("memory_id", "similarity").rows())
    assert hits[0].score == pytest.approx(1.25 * (0.6 * near[said.id] + 0.25), abs=1e-3)
    assert hits[1].score == pytest.approx(0.6 * near[found.id] + 0.25, abs=1e-3)


@pytest.mark.long
def test_09_a_users_note_is_private_and_an_agents_note_is_the_projects(lab):
    """A user and an agent write of one deadline. Another agent of the project sees the agent's note alone.

    Design: "private: its creator, default for what a user writes; ... project: anyone with access, default for what
    an agent writes"; howto-agents.txt says the same of workbench.
    """
    mine = lab.remember(
        "honestly I can't promise the tax export for April, my kid is ill",
        kind="context", project="books", creator="user",
    )  # fmt: skip
    coder = lab.agents("coder", project="books", session="mon")
    theirs = coder.remember("the tax export breaks on refunds from April", kind="gotcha")
    assert row(lab, mine.id)["visibility"] == "private"
    assert row(lab, theirs.id)["visibility"] == "project"
    assert row(lab, theirs.id)["creator"] == "agent:coder"
    reviewer = lab.agents("reviewer", project="books", session="tue")
    assert set(reviewer.recall("tax export April").ids) == {theirs.id}
    assert "my kid is ill" not in reviewer.context("tax export in April").text
    assert set(lab.recall("tax export April", viewer="user", project="books").ids) == {mine.id, theirs.id}


@pytest.mark.long
def test_10_what_has_no_project_holds_in_each_and_a_project_can_be_switched_off(lab):
    """A preference without a project comes up in each; a search over all finds each; one project is switched off.

    Design: "No project means user-level: valid in every project", "Cross-project search", "off per project".
    """
    own = lab.remember("I want commit messages in English, imperative, short", kind="preference")
    web = lab.remember("commit messages of the web repo start with the ticket", kind="convention", project="web")
    api = lab.remember("commit messages in api name the endpoint", kind="convention", project="api")
    ask = "how do we write commit messages"
    assert set(lab.recall(ask, project="web").ids) == {own.id, web.id}
    assert set(lab.recall(ask, project="api").ids) == {own.id, api.id}
    assert set(lab.recall(ask).ids) == {own.id, web.id, api.id}
    lab.agents.switch_off("web", reason="customer asked")
    with pytest.raises(MemoryOff):
        lab.remember("the web repo moved to pnpm", project="web")
    silent = lab.recall(ask, project="web")
    assert len(silent) == 0
    assert silent.off
    assert set(lab.recall(ask).ids) == {own.id, api.id}
    lab.agents.switch_on("web")
    assert web.id in lab.recall(ask, project="web").ids


def test_11_long_conventions_get_summaries_and_the_first_tier_stays_small(lab):
    """Thirty long conventions each get a short summary when they are written, and a prompt holds 600 tokens of them.

    Design: "a *summary* of 25-35 tokens, made at write, for injection", "tier 1 always (about 600 tokens: ...
    conventions and decisions)"; howto-context.txt counts a token as four bytes.
    """
    topics = (
        "loaders parsers queues caches forms menus charts mails exports imports locks timers tokens roles routes "
        "queries indexes uploads pages icons fonts colours tables dialogs hooks flags clocks maps drafts jobs"
    ).split()
    texts = [
        f"All {topic} in this repository get a file of their own below src/{topic}, with the public part on top. "
        f"Whoever adds to the {topic} writes a test beside it and says in the pull request what it costs at run time. "
        f"Karim once put three {topic} into one file and nobody found the bug for a fortnight, which is why we ask. "
        f"Exceptions are fine for throwaway scripts as long as the folder name says so and someone deletes it later."
        for topic in topics
    ]
    lab.remember([{"text": t, "kind": "convention", "project": "atlas"} for t in texts], linking="off")
    for summary in lab.memories["summary"]:
        assert summary
        assert (len(summary.encode()) + 3) // 4 <= 35
    context = lab.context("tidy up the loaders", project="atlas", budget=1800)
    assert context.tokens <= 1800
    first = context.frame.filter(pl.col("tier") == 1)
    assert 3 <= first.height < 30
    assert first["tokens"].sum() <= 600
    assert not any(text in context.text for text in texts)


@pytest.mark.long
def test_12_a_task_brings_its_module_with_tests_and_its_gotcha_and_nothing_of_others(lab, library):
    """A task names the module loans. The prompt has its files, tests and gotcha, a convention, and no other gotcha.

    Design: "tier 2 for the task (... memories whose file belongs to the modules that the task names; summaries)",
    "Form: files, tests, dependencies of the module, then a line `[GOTCHA] file` and a line with the summary".
    """
    lab.agents.modules.scan(library, project="library", progress=False)
    rule = lab.remember("commit straight to main, we are only two", kind="convention", project="library")
    wanted = lab.remember(
        "due() once gave Sundays back and the desk is closed then, so Mrs Halloran had forty people at the door",
        summary="due dates may not fall on a Sunday: push to Monday",
        kind="gotcha", project="library", files=["loans/dates.py"],
    )  # fmt: skip
    other = lab.remember(
        "isbn numbers of old paperbacks end in an X, keep them as text",
        kind="gotcha", project="library", files=["catalogue/books.py"],
    )  # fmt: skip
    context = lab.context("the loans module lets people return things on holidays, mend that", project="library")
    assert "loans" in context.modules
    assert "loans/dates.py" in context.text
    assert "tests/test_dates.py" in context.text
    tiers = dict(context.frame.select("memory_id", "tier").rows())
    assert tiers[rule.id] == 1
    assert tiers[wanted.id] == 2
    assert other.id not in tiers
    lines = context.text.splitlines()
    place = next(n for n, line in enumerate(lines) if "[GOTCHA] loans/dates.py" in line)
    assert "push to Monday" in lines[place + 1]


def test_13_a_session_is_told_nothing_twice_and_another_session_hears_it_anew(lab):
    """An agent gets a context, asks again and searches on demand in one session; then another session begins.

    Design: "tier 3 on demand (..., never the same memory twice in a session)"; howto-context.txt: a recall of the
    session "shows no memory that a context or a recall of the session showed before; hits.repeated lists those".
    """
    rule = lab.remember("php templates are indented with two spaces", kind="convention", project="blog")
    trap = lab.remember(
        "the php template cache keeps old comments, clear it by hand",
        kind="gotcha", project="blog", files=["themes/comments.php"],
    )  # fmt: skip
    monday = lab.agents("coder", project="blog", session="monday")
    task = "old comments show up in themes/comments.php"
    told = monday.context(task)
    assert {rule.id, trap.id} <= set(told.hits.ids)
    assert not {rule.id, trap.id} & set(monday.context(task).hits.ids)
    searched = monday.recall("php template cache and old comments")
    assert not {rule.id, trap.id} & set(searched.ids)
    assert trap.id in searched.repeated
    assert trap.id in monday.recall("php template cache and old comments", again=True).ids
    tuesday = lab.agents("coder", project="blog", session="tuesday")
    assert {rule.id, trap.id} <= set(tuesday.context(task).hits.ids)


def test_14_a_pasted_key_never_reaches_the_disk(tmp_path, clock):
    """An agent notes a line with an access key. The note says that something was taken out, and no file has the key.

    Design: "scan for secrets (patterns and entropy; `[REDACTED: type]`, warned, logged)"; secrets.txt: "The original
    is in no file of the lab".
    """
    key = "AKIA" + "Q7ZKX3WPLD5RTB2M"
    path = tmp_path / "ops.memlab"
    with memlab.open(path, pack="workbench", clock=clock) as lab:
        coder = lab.agents("coder", project="ops", session="mon")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            note = coder.remember(f"the backup bucket wants {key} until Thursday, then we rotate", kind="context")
        assert note.redacted
        assert "[REDACTED: " in note.text
        assert key not in note.text
        assert "backup bucket" in note.text
        assert note.id in coder.recall("which access does the backup bucket want").ids
    for file in path.rglob("*"):
        assert not file.is_file() or key.encode() not in file.read_bytes()


@pytest.mark.long
def test_15_the_same_remark_from_a_second_agent_is_not_stored_twice(lab):
    """Two agents of a project write one remark, but for its full stop. One memory stays; another remark is added.

    Design: "near-duplicates (> 0.92 against the top 3) merge or skip"; reference-lab.txt: outcomes say "merged" or
    "skipped", standing names what stands for it.
    """
    coder = lab.agents("coder", project="site", session="mon")
    tester = lab.agents("tester", project="site", session="tue")
    first = coder.remember("flush the cdn after each deploy or people keep getting the old bundle", kind="gotcha")
    again = tester.remember(
        [{"text": "flush the cdn after each deploy or people keep getting the old bundle.", "kind": "gotcha"}]
    )
    assert again.outcomes["outcome"][0] in ("merged", "skipped")
    assert list(again.standing) == [first.id]
    assert lab.memories.filter(pl.col("status") == "active").height == 1
    tester.remember("safari ignores our lazy images below the fold", kind="gotcha")
    assert lab.memories.filter(pl.col("status") == "active").height == 2


@pytest.mark.long
def test_16_when_the_team_turns_from_tabs_to_spaces_the_old_rule_is_retired_and_it_is_said(lab, clock):
    """An agent writes that the frontend uses tabs, and a month later that it now uses spaces. The new rule stands.

    Design: "contradictions deprecate the old one and say so ("Updated: tabs -> spaces")"; reference-lab.txt: outcomes
    has "superseded" (of is out of use) with why.
    """
    coder = lab.agents("coder", project="web", session="march")
    old = coder.remember("The frontend uses tabs for indentation", kind="convention")
    clock.advance(days=30)
    later = lab.agents("coder", project="web", session="april")
    given = later.remember([{"text": "The frontend now uses spaces for indentation", "kind": "convention"}])
    new = given.standing[0]
    assert new != old.id
    said = given.outcomes.filter(pl.col("outcome") == "superseded")
    assert said["of"].to_list() == [old.id]
    assert said["why"][0]
    assert row(lab, old.id)["status"] in ("superseded", "deprecated")
    assert set(lab.recall("tabs or spaces for indentation in the frontend", project="web").ids) == {new}
    assert "uses tabs" not in lab.context("format the frontend", project="web").text


@pytest.mark.long
def test_17_an_agent_writes_fifty_short_notes_a_session_and_a_log_of_any_length_is_taken_whole(lab):
    """The fifty-first note and one above 2 KB are refused. A chat log with repetitions and a long turn is kept whole.

    Design: "50 memories a session, 2 KB each", "Bulk ingest of logs is exempt and never drops turns".
    """
    coder = lab.agents("coder", project="farm", session="mon")
    coder.remember([f"field {n} was sprayed by drone number {n % 7}" for n in range(50)], linking="off")
    with pytest.raises(InputError):
        coder.remember("the barn door sensor is upside down")
    assert lab.memories.height == 50
    other = lab.agents("coder", project="farm", session="tue")
    with pytest.raises(InputError):
        other.remember("the tractor beeps " * 120)
    other.remember("the barn door sensor is upside down")
    assert lab.memories.height == 51
    talk = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": "ok" if n % 3 else f"reading {n} from the silo"}
        for n in range(70)
    ]
    talk.append({"role": "user", "content": "and here is all of the weather station: " + "wind calm, " * 400})
    loaded = lab.load(talk, project="farm", session="radio", progress=False)
    assert loaded.count("added") == 71
    assert lab.memories.filter(pl.col("kind") == "turn").height == 71


def test_18_a_session_leaves_its_lessons_once(lab):
    """The end of a session stores what was found out, as the agent's; the same lessons a day later add no copies.

    Design: "After a session: compress the log to about 2,000 tokens, extract, de-duplicate"; howto-extract.txt: what
    was found out and what is to be avoided, read by rules from the messages.
    """
    talk = [
        {"role": "user", "content": "Nightly import fails again, can you have a look?"},
        {"role": "tool", "name": "pytest", "content": "14 passed"},
        {"role": "assistant", "content": "The root cause was a stale lock file. Don't use rsync in the importer."},
    ]
    learned = lab.agents.end_session("monday", talk, agent="coder", project="etl")
    texts = lab.memories["text"].to_list()
    assert any("stale lock file" in text for text in texts)
    assert any("rsync" in text for text in texts)
    assert set(lab.memories["project"]) == {"etl"}
    assert len(learned.extracted.items) > 0
    assert sum(len(one.text.encode()) for one in learned.extracted.items) / 4 <= 2000
    lab.agents.end_session("tuesday", talk, agent="coder", project="etl")
    active = lab.memories.filter(pl.col("status") == "active")["text"].to_list()
    assert sorted(active) == sorted(set(active))


def test_19_vectors_of_another_model_are_refused_until_all_is_embedded_again(tmp_path, clock):
    """A lab is written with one embedder and opened with another. It is refused, then embedded again and asked.

    Design: "Vectors carry model and dimension; a query sees only the active model's; a switch re-embeds".
    """

    def letters(texts):
        rows = [[float(text.lower().count(c)) for c in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        columns = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", pl.Float64)
        return pl.DataFrame(rows, schema=columns, orient="row").to_numpy()

    path = tmp_path / "choir.memlab"
    with memlab.open(path, pack="workbench", clock=clock, embedder=letters) as lab:
        lab.remember("the altos rehearse on Wednesday evening", kind="decision", linking="off")
        lab.remember("sheet music is printed double sided", kind="convention", linking="off")
        assert lab.io.embedder.dim == 26
    with pytest.raises(memlab.LabError):
        memlab.open(path, clock=clock)
    with memlab.open(path, clock=clock, reembed=True) as lab:
        assert lab.io.embedder.dim == 256
        assert lab.policies.pack.name == "workbench"
        hits = lab.recall("which evening do the altos rehearse?")
        assert hits[0].text == "the altos rehearse on Wednesday evening"
        assert len(hits) == 2


@pytest.mark.long
def test_20_three_backups_are_kept_and_one_of_them_brings_the_lab_back(tmp_path, clock):
    """Four backups are made, one after each note. Three are kept, the lab is sound, and the third is put back.

    Design: "safe online backup daily and on close, three kept; integrity check on open"; howto-keep-a-lab-safe.txt.
    """
    path = tmp_path / "garden.memlab"
    backups = []
    with memlab.open(path, pack="workbench", clock=clock) as lab:
        for text in ("beans along the fence", "the pump is in shed two", "no slug pellets, the hedgehog!", "sow peas"):
            lab.remember(text, kind="convention", linking="off")
            clock.advance(hours=6)
            backups.append(lab.io.backup())
        assert backups[-1].frame.height == 3
        assert backups[2].path.exists()
    assert memlab.check(path).sound
    memlab.restore(path, backups[2].path)
    with memlab.open(path, clock=clock) as lab:
        assert lab.memories["text"].to_list() == [
            "beans along the fence", "the pump is in shed two", "no slug pellets, the hedgehog!",
        ]  # fmt: skip


@pytest.mark.long
def test_21_a_wrong_correction_is_flagged_what_it_replaced_comes_up_and_is_brought_back(lab):
    """A note is edited, the edit is flagged as wrong, and the old note, up for review, is restored; then a flag undone.

    Design: "flag it with a reason, it leaves injection, memories joined to it by `supersedes` in either direction
    come up for review, it can be restored"; "confidence ... drops when deprecated".
    """
    old = lab.remember("Bruno has the pager for billing", kind="decision", project="ops")
    new = lab.edit(old, text="Carmen has the pager for billing")
    ask = "who has the pager for billing"
    assert set(lab.recall(ask, project="ops", log=False).ids) == {new.id}
    sure = row(lab, new.id)["confidence"]
    flagged = lab.forget(new.id, how="deprecate", reason="she was on leave, the sheet was last year's")
    assert len(lab.recall(ask, project="ops", log=False)) == 0
    assert "Carmen" not in lab.context("page whoever has billing", project="ops", log=False).text
    wrong = row(lab, new.id)
    assert wrong["status"] == "deprecated"
    assert "on leave" in wrong["reason"]
    assert wrong["confidence"] < sure
    assert old.id in flagged.review["memory_id"].to_list()
    assert old.id in lab.upkeep.review.related(new.id)["memory_id"].to_list()
    lab.restore(old.id)
    assert set(lab.recall(ask, project="ops", log=False).ids) == {old.id}
    lab.forget(old.id, how="deprecate", reason="not sure either")
    assert len(lab.recall(ask, project="ops", log=False)) == 0
    lab.restore(old.id)
    assert set(lab.recall(ask, project="ops", log=False).ids) == {old.id}


@pytest.mark.long
def test_22_a_deleted_project_can_come_back_for_thirty_days_and_its_map_goes_at_once(tmp_path, clock, library):
    """A project with a map is deleted and restored on the tenth day; deleted again, it is due after thirty days.

    Design: "Soft delete with 30 days of grace, for a memory or a whole project (its map goes at once)".
    """
    with memlab.open(tmp_path / "village.memlab", pack="workbench", clock=clock) as lab:
        lab.agents.modules.scan(library, project="library", progress=False)
        fines = lab.remember("children pay no fines at all", kind="decision", project="library")
        other = lab.remember("the cinema is closed on Mondays", kind="decision", project="cinema")
        lab.forget(project="library", how="delete")
        assert set(lab.recall("fines for children, and the cinema").ids) == {other.id}
        assert "library" not in lab.agents.modules.projects()
        with pytest.raises(UnknownName):
            lab.agents.modules.map("library")
        clock.advance(days=10)
        lab.restore(project="library")
        assert set(lab.recall("fines for children, and the cinema").ids) == {fines.id, other.id}
        lab.forget(project="library", how="delete")
        clock.advance(days=29)
        assert lab.upkeep.maintain(progress=False).due.height == 0
        clock.advance(days=2)
        assert lab.upkeep.maintain(progress=False).due["id"].to_list() == [fines.id]
        lab.purge(overdue=True)
        assert row(lab, fines.id)["status"] == "purged"
        assert not row(lab, fines.id)["text"]
        with pytest.raises(InputError):
            lab.restore(fines.id)


@pytest.mark.long
def test_23_the_figures_say_what_a_long_hunt_for_a_bug_has_saved(lab, clock):
    """A bug took forty turns to find; next day its gotcha is injected and helps. The figures show tokens saved.

    Design: "Metrics: tokens of discovery saved ..., memories injected, on-demand searches, memories referenced, ...
    average confidence"; "analytics (most common gotchas)"; howto-context.txt says how they are counted.
    """
    lab.load(
        [
            {
                "role": "assistant" if n % 2 else "user",
                "content": f"try {n}: " + f"changed knob {n} of the proxy, restarted, reset again after {n} s. " * 5,
            }
            for n in range(40)
        ],
        project="photos", session="hunt", progress=False,
    )  # fmt: skip
    clock.advance(hours=5)
    trap = lab.remember(
        "uploads above 64 MB die because the proxy buffers them, send chunks",
        kind="gotcha", project="photos", session="hunt", files=["uploads/client.go"],
    )  # fmt: skip
    clock.advance(days=1)
    coder = lab.agents("coder", project="photos", session="next-day")
    context = coder.context("big uploads fail in uploads/client.go", budget=300)
    assert trap.id in context.hits.ids
    coder.feedback(trap.id, "success", decision=context.decision)
    coder.recall("which limits does the proxy have?")
    metrics = lab.agents.metrics()
    assert metrics["contexts"] == 1
    assert metrics["injected"] >= 1
    assert metrics["referenced"] >= 1
    assert metrics["searches"] >= 1
    assert 0 < metrics["tokens-injected"] <= 300
    assert metrics["tokens-saved"] > 1000
    assert 0 < metrics["confidence"] <= 1
    assert trap.id in metrics.gotchas["memory_id"].to_list()


@pytest.mark.long
def test_24_everything_can_be_taken_away_as_json_and_markdown_and_then_deleted(lab, tmp_path):
    """A lab with a link and a flagged note is exported twice, read back from both files, and then deleted.

    Design: "Export all (JSON and Markdown), delete all", "relations supersedes, depends-on, caused-by, related-to".
    """
    crash = lab.remember("kiosk screens freeze around noon", kind="error-pattern", project="museum")
    heat = lab.remember("the attic server throttles in the heat", kind="environment-quirk", project="museum")
    rumour = lab.remember("somebody said cosmic rays", kind="context", project="museum")
    lab.graph.link(crash, heat, "caused-by")
    lab.forget(rumour, how="deprecate", reason="a joke of Pavel's")
    lines = lab.io.export(tmp_path / "museum.jsonl").read_text().splitlines()
    assert all(json.loads(line) is not None for line in lines if line.strip())
    lab.io.export(tmp_path / "museum.md")
    columns = ["text", "kind", "project", "status"]
    for name in ("museum.jsonl", "museum.md"):
        back = memlab.load(tmp_path / name, progress=False)
        assert sorted(back.memories.select(columns).rows()) == sorted(lab.memories.select(columns).rows()), name
        joined = back.edges.filter(pl.col("relation") == "caused-by")
        assert joined.height == 1, name
        words = dict(back.memories.select("id", "text").rows())
        assert words[joined["source"][0]] == "kiosk screens freeze around noon", name
        back.close()
    lab.forget(lab.memories, how="delete")
    assert len(lab.recall("why do the kiosk screens freeze?")) == 0
    assert set(lab.memories["status"]) == {"deleted"}


@pytest.mark.long
def test_25_roles_say_who_may_write_and_whose_memories_may_be_taken_away(lab):
    """A reader writes nothing, a member takes away its own alone and stays in its project, an owner takes any.

    Design: "Owner: all on own; member: reads team, writes own, deletes no one else's; admin: all, with an audit log",
    "an agent writes only to its own project", "cross-tenant reads return nothing".
    """
    ana = lab.agents("ana", project="ferry", session="mon")
    ben = lab.agents("ben", project="ferry", session="mon")
    guest = lab.agents("guest", project="ferry", session="mon", role="reader")
    boss = lab.agents("boss", project="ferry", session="mon", role="owner")
    stranger = lab.agents("stranger", project="airline", session="mon")
    note = ana.remember("the harbour api answers in knots, not in km/h", kind="gotcha")
    ask = "which unit does the harbour api answer in"
    for agent in (ana, ben, guest, boss):
        assert note.id in agent.recall(ask, again=True).ids
    assert len(stranger.recall(ask)) == 0
    with pytest.raises(NotPermitted):
        guest.remember("knots are silly")
    with pytest.raises(NotPermitted):
        ben.forget(note)
    with pytest.raises(NotPermitted):
        ben.remember("planes use knots as well", project="airline")
    assert note.id in ana.recall(ask, again=True).ids
    boss.forget(note)
    assert len(ana.recall(ask, again=True)) == 0
    assert lab.log.filter(pl.col("memories").list.contains(note.id)).height >= 2
