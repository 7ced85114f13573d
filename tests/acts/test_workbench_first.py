"""Acts of the workbench design, written from its description and the public reference alone."""

import re
import zlib

import memlab
import polars as pl
import pytest
from memlab.errors import EmbedderMismatch, InputError, MemoryOff, NotPermitted, PrivacyError, ReadOnlyLab, UnknownName


def bag(texts):
    """Vectors by counting words: an embedder of our own, so that a cosine is what the words say."""
    rows = []
    for text in texts:
        row = [0.0] * 256
        row[0] = 0.01
        for word in re.findall(r"[a-z0-9]+", text.lower()):
            row[zlib.crc32(word.encode()) % 256] += 1.0
        rows.append(row)
    return pl.DataFrame(rows, schema=[str(i) for i in range(256)], orient="row").to_numpy()


@pytest.fixture
def clock():
    return memlab.ManualClock("2026-03-02")


@pytest.fixture
def lab(clock):
    with memlab.open(pack="workbench", clock=clock) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path):
    """A small project: two modules, a test, instructions for agents and a configuration of pytest."""
    root = tmp_path / "shop"
    for name, text in {
        "cart/__init__.py": '"""What somebody is about to buy."""\n',
        "cart/prices.py": "from stock.levels import left\n",
        "cart/coupons.py": "RATE = 10\n",
        "stock/__init__.py": "",
        "stock/levels.py": "def left():\n    return 3\n",
        "stock/orders.py": "",
        "tests/test_prices.py": "from cart.prices import left\n",
        "AGENTS.md": "# For agents\n\n- Prices are whole cents, never floats.\n",
        "pyproject.toml": '[project]\nname = "shop"\nversion = "0.1"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.long
def test_01_cold_start_reads_a_folder_and_shows_what_it_found(lab, shop):
    """A scan without a model groups files by folder, finds the test framework and seeds conventions for review only.

    Design: "Cold start without a language model: walk the tree, group by folder, find frameworks ... seed conventions
    ... shown for review"; howto-map-a-code-base for the calls.
    """
    found = lab.agents.modules.scan(shop)
    modules = {row["module"]: row for row in found.frame.iter_rows(named=True)}
    assert {"cart", "stock"} <= set(modules)
    assert modules["cart"]["confidence"] == modules["stock"]["confidence"] == "shallow"
    assert any("test_prices" in test for test in modules["cart"]["tests"])
    assert any("pytest" in command for command in found.commands["command"].to_list())
    assert any("whole cents" in text for text in found.conventions["text"].to_list())
    assert lab.memories.height == 0
    assert lab.agents.modules.find("round the prices in the cart", project="shop")["module"][0] == "cart"
    lab.remember(found.conventions)
    assert any("whole cents" in hit.text for hit in lab.recall("prices in cents or floats?", project="shop"))


@pytest.mark.long
def test_02_sessions_make_a_module_known_and_an_agent_describes_another(lab, shop):
    """Touching a file makes its module partial, three sessions make it mapped, and a description outlives a new scan.

    Design: "confidence: shallow = scan only, partial = ... some files touched, mapped = several sessions", "an agent
    can update a module"; reference-modules: "mapped after three sessions".
    """
    lab.agents.modules.scan(shop)
    first = lab.agents.modules.touch(["cart/prices.py"], project="shop", session="mon")
    assert dict(first.frame.select("module", "confidence").rows())["cart"] == "partial"
    lab.agents.modules.touch(
        {"tool_name": "Edit", "tool_input": {"file_path": "cart/prices.py"}}, project="shop", session="tue"
    )
    lab.agents.modules.touch(["cart/coupons.py"], project="shop", session="wed")
    lab.agents.modules.describe("stock", project="shop", description="How many pieces are left, and who ordered them.")
    lab.agents.modules.scan(shop)
    known = lab.agents.modules.map("shop")
    confidence = dict(known.frame.select("module", "confidence").rows())
    assert confidence["cart"] == "mapped"
    assert confidence["stock"] != "mapped"
    mapped = known.frame.filter(pl.col("confidence") == "mapped").height
    assert known.coverage == pytest.approx(mapped / known.frame.height)
    assert "who ordered them" in dict(known.frame.select("module", "description").rows())["stock"]


@pytest.mark.long
def test_03_a_long_note_gets_a_summary_and_the_summary_is_injected(lab):
    """A rambling decision gets a summary of at most 35 tokens when written, and a context gives that, not the whole.

    Design: "a *summary* of 25-35 tokens, made at write, for injection"; systems.txt: "Sentences of the text, no words
    of its own", turns have none.
    """
    text = (
        "After a week of back and forth with Olu and Petra we settled on Postgres for the ledger. "
        "Mongo was the runner-up because two people already knew it, but nobody could explain how the monthly close "
        "would work without real transactions. We also looked at keeping SQLite per tenant, which Petra still likes. "
        "The backups would have been a nightmare though, with four thousand little files to ship every night. "
        "Olu will write the migration once the invoices freeze is over, probably in the second half of April."
    )
    note = lab.remember(text, kind="decision", project="ledger")
    turn = lab.remember(text.replace("Olu", "Kim"), kind="turn", session="chat", project="ledger")
    summaries = dict(lab.memories.select("id", "summary").rows())
    assert summaries[note.id]
    assert len(summaries[note.id].encode()) <= 35 * 4
    assert set(re.findall(r"[a-z]+", summaries[note.id].lower())) <= set(re.findall(r"[a-z]+", text.lower()))
    assert not summaries[turn.id]
    context = lab.context("which database for the ledger?", project="ledger", session="today")
    assert note.id in context.frame["memory_id"].to_list()
    assert text not in context.text


@pytest.mark.long
def test_04_a_user_writes_in_private_and_an_agent_for_the_project(lab):
    """What the user writes is seen by the user alone, what an agent writes by everyone with the project.

    Design: "`visibility` (private: its creator, default for what a user writes; ... project: anyone with access,
    default for what an agent writes), creator (`user`, `agent:coder` ...)".
    """
    mine = lab.remember(
        "honestly the checkout rewrite was rushed, I would redo it in autumn",
        kind="decision", project="web", creator="user",
    )
    theirs = lab.agents("coder", project="web").remember(
        "the checkout rewrite moved validation into checkout/forms.ts", kind="codebase-discovery"
    )
    rows = {row["id"]: row for row in lab.memories.iter_rows(named=True)}
    assert (rows[mine.id]["visibility"], rows[theirs.id]["visibility"]) == ("private", "project")
    assert rows[theirs.id]["creator"] == "agent:coder"
    seen = lab.agents("reviewer", project="web").recall("checkout rewrite").ids
    assert theirs.id in seen and mine.id not in seen
    assert {mine.id, theirs.id} <= set(lab.recall("checkout rewrite", project="web", viewer="user").ids)


@pytest.mark.long
def test_05_no_project_means_every_project(lab):
    """A note without a project comes up in every project, a note of one project in no other, all in a search of all.

    Design: "No project means user-level: valid in every project", "Cross-project search"; reference-lab: "project and
    branch also admit what belongs to none".
    """
    mine = lab.remember("squash before merging a pull request, please", kind="preference")
    api = lab.remember("a pull request in api needs the contract tests green before merging", kind="convention",
                       project="api")
    web = lab.remember("web: merging a pull request deploys a preview link for Jonas", kind="context", project="web")
    query = "merging a pull request"
    in_api, in_web = lab.recall(query, project="api").ids, lab.recall(query, project="web").ids
    assert {mine.id, api.id} <= set(in_api) and web.id not in in_api
    assert {mine.id, web.id} <= set(in_web) and api.id not in in_web
    assert {mine.id, api.id, web.id} <= set(lab.recall(query).ids)


@pytest.mark.long
def test_06_confidence_grows_with_use_and_drops_when_deprecated(lab, clock):
    """Confidence begins at .5, rises as the memory is retrieved, falls when it is flagged and returns with a restore.

    Design: "confidence from 0.5, grows with retrieval, drops when deprecated"; systems.txt: "restore undoes deprecate,
    number by number".
    """
    def confidence(memory):
        return lab.memories.filter(pl.col("id") == memory.id)["confidence"][0]

    note = lab.remember("yarn install hangs behind the office proxy unless strict-ssl is off", kind="environment-quirk")
    assert confidence(note) == pytest.approx(0.5, abs=0.01)
    for _ in range(4):
        clock.advance(hours=3)
        assert note.id in lab.recall("yarn install hangs behind the proxy").ids
    grown = confidence(note)
    assert grown > 0.5
    lab.forget(note, how="deprecate", reason="the proxy was taken down")
    dropped = confidence(note)
    assert dropped < grown
    lab.restore(note)
    assert confidence(note) >= grown - 1e-4 > dropped


@pytest.mark.long
def test_07_the_score_is_nearness_freshness_and_use(clock):
    """Sixty days later each score is .6 cosine + .25 freshness + .15 use; pinned counts as fresh, human feedback more.

    Design: "0.6 cosine + 0.25 e^(-rate * days since access) + 0.15 min(access / 20, 1) ... pinned counts as fresh";
    systems.txt: "human-feedback scores a quarter more". Vectors are given by a callable (howto-bring-an-embedder).
    """
    with memlab.open(pack="workbench", clock=clock, embedder=bag) as lab:
        gotcha = lab.remember("the cron worker drops jobs when redis restarts", kind="gotcha")
        quirk = lab.remember("redis on the mac mini needs a cron kick after sleep", kind="context", pinned=True)
        rule = lab.remember("every cron job logs to stdout only", kind="convention")
        human = lab.remember("Ines said: stop retrying the redis job forever", kind="human-feedback")
        for _ in range(3):
            lab.recall("redis cron job", limit=10)
        clock.advance(days=60)
        frame = lab.recall("redis cron job", limit=10, log=False).frame
    fresh = {gotcha.id: 0.5, quirk.id: 1.0, rule.id: 1.0, human.id: 1.0}
    assert set(frame["memory_id"].to_list()) == set(fresh)
    for row in frame.iter_rows(named=True):
        assert row["access"] > 0
        expected = 0.6 * row["similarity"] + 0.25 * fresh[row["memory_id"]] + 0.15 * min(row["access"] / 20, 1)
        if row["memory_id"] == human.id:
            expected *= 1.25
        assert row["score"] == pytest.approx(expected, abs=0.005)


@pytest.mark.long
def test_08_each_kind_has_its_half_life(lab):
    """All kinds of the design are taken, each fades by its own half-life, and a kind that nobody knows is refused.

    Design: "Half-life: convention, decision, dependency-relation, human-feedback, codebase-map never; preference 180;
    pr-* 90; gotcha and error-pattern 60; ... 30 days; context and environment-quirk 7"; reference-errors for the kind.
    """
    days = dict.fromkeys(
        ["convention", "decision", "dependency-relation", "human-feedback", "codebase-map"]
    ) | {
        "preference": 180, "pr-review": 90, "pr-finding": 90, "pr-pattern": 90, "pr-gotcha": 90, "gotcha": 60,
        "error-pattern": 60, "session-insight": 30, "task-outcome": 30, "codebase-discovery": 30, "context": 7,
        "environment-quirk": 7,
    }
    kept = lab.remember(
        [{"text": f"about the login screen, filed under {kind}", "kind": kind} for kind in days], linking="off"
    )
    frame = lab.upkeep.forecast(kept.ids, "2026-06-01", points=2).frame
    for kind, number in zip(days, kept.ids, strict=True):
        half = frame.filter(pl.col("memory_id") == number)["half_life"][0]
        if days[kind] is None:
            assert half is None or not half < 36500
        else:
            assert half == pytest.approx(days[kind])
    with pytest.raises(UnknownName):
        lab.remember("zz", kind="shopping-list")


def test_09_a_second_copy_gives_way_to_something_else(clock):
    """Of two copies of a note and another note on the topic, two places go to one copy and to the other note.

    Design: the score, "then MMR"; systems.txt: "From .71 on a second copy stands before what is different", the weight
    being .65. Vectors are given by a callable.
    """
    with memlab.open(pack="workbench", clock=clock, embedder=bag) as lab:
        one = lab.remember("rotate the signing keys every ninety days", kind="decision", linking="off")
        two = lab.remember("rotate the signing keys every ninety days please", kind="decision", linking="off")
        other = lab.remember("the signing keys live with Bea, rotate there", kind="decision", linking="off")
        shown = lab.recall("rotate the signing keys", limit=2, log=False).ids
    assert len(shown) == 2
    assert shown[0] in (one.id, two.id)
    assert shown[1] == other.id


def test_10_another_branch_is_not_asked_until_it_is_merged(lab):
    """On main, what was learned on an unmerged branch stays away; notes without a branch come up on either.

    Design: "Branch: memories of another unmerged branch are not eligible"; reference-lab: recall(branch=) takes one
    word or several and admits what belongs to none.
    """
    everywhere = lab.remember("upload chunks are 5 MB, S3 refuses smaller parts", kind="gotcha", project="api")
    spike = lab.remember("the new upload client sends chunks in parallel and breaks resume", kind="gotcha",
                         project="api", branch="spike/parallel-upload")
    query = "upload chunks"
    on_main = lab.recall(query, project="api", branch="main").ids
    on_spike = lab.recall(query, project="api", branch="spike/parallel-upload").ids
    merged = lab.recall(query, project="api", branch=["main", "spike/parallel-upload"]).ids
    assert everywhere.id in on_main and spike.id not in on_main
    assert {everywhere.id, spike.id} <= set(on_spike)
    assert {everywhere.id, spike.id} <= set(merged)


@pytest.mark.long
def test_11_conventions_and_pins_are_always_there_once_a_session(lab):
    """A convention, a decision and a pinned quirk open the prompt of any task, within budget and once in a session.

    Design: "tier 1 always (about 600 tokens: map summary, pinned, conventions and decisions)", tier 2 about 1,200,
    tier 3 about 30 a result, "never the same memory twice in a session"; howto-context for the frame.
    """
    always = [
        lab.remember("commit messages start with the ticket number", kind="convention", project="web").id,
        lab.remember("we dropped Sass, plain CSS modules from here on", kind="decision", project="web").id,
        lab.remember("node 22 only, nvm use before anything", kind="environment-quirk", project="web", pinned=True).id,
    ]
    task = "why does the avatar picture flicker on the profile page?"
    context = lab.context(task, project="web", session="mon", budget=500)
    tiers = dict(context.frame.select("memory_id", "tier").rows())
    assert {tiers.get(number) for number in always} == {1}
    assert context.tokens <= 500
    again = lab.context(task, project="web", session="mon", budget=500)
    assert not set(always) & set(again.frame["memory_id"].to_list())
    tomorrow = lab.context(task, project="web", session="tue", budget=500)
    assert set(always) <= set(tomorrow.frame["memory_id"].to_list())
    assert [lab.policies.pack.count(f"tier-{tier}-tokens") for tier in (1, 2, 3)] == [600, 1200, 30]


def test_12_a_task_gets_its_module_and_the_gotcha_of_its_files(lab, shop):
    """A task on the cart gets the module's tests and a `[GOTCHA] file` line with its summary, and not the stock's.

    Design: "memories whose file belongs to the modules that the task names; summaries", "Form: files, tests,
    dependencies of the module, then a line `[GOTCHA] file` and a line with the summary"; howto-context.
    """
    lab.agents.modules.scan(shop)
    lab.remember(
        "Half cents pile up when a percentage is applied per line; Tomasz lost an afternoon to a total that was off",
        summary="Rounding per line loses cents: round the total once",
        kind="gotcha", project="shop", files=["cart/coupons.py"],
    )
    other = lab.remember(
        "warehouse scanners in Gdansk send every barcode twice after a reboot", kind="gotcha", project="shop",
        files=["stock/orders.py"],
    )
    context = lab.context("apply the discount in cart/prices.py", project="shop", session="mon")
    lines = context.text.splitlines()
    heads = [number for number, line in enumerate(lines) if "[GOTCHA]" in line and "cart/coupons.py" in line]
    assert len(heads) == 1
    assert "Rounding per line loses cents" in lines[heads[0] + 1]
    assert "test_prices" in context.text
    assert len(context.modules) > 0
    assert other.id not in context.frame["memory_id"].to_list()
    assert "barcode" not in context.text


def test_13_what_an_agent_asks_for_comes_once_a_session(lab):
    """An agent that asks the same thing twice in a session is given nothing twice, unless it says again=True.

    Design: "tier 3 on demand (... never the same memory twice in a session)"; howto-context: "hits.repeated lists
    those, and again=True shows them".
    """
    note = lab.remember("the websocket closes after 60 s idle behind nginx", kind="gotcha", project="chat",
                        visibility="project")
    lab.remember("the websocket reconnect uses a jittered backoff", kind="codebase-discovery", project="chat",
                 visibility="project")
    agent = lab.agents("coder", project="chat", session="mon")
    first = agent.recall("websocket closes when idle")
    assert note.id in first.ids
    second = agent.recall("websocket closes when idle")
    assert not set(first.ids) & set(second.ids)
    assert note.id in second.repeated
    assert note.id in agent.recall("websocket closes when idle", again=True).ids
    assert note.id in lab.agents("coder", project="chat", session="tue").recall("websocket closes when idle").ids


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_14_a_secret_never_reaches_the_disk(tmp_path):
    """An agent pastes a token and a key: both are taken out and named, the rest is kept, and no file holds them.

    Design: "scan for secrets (patterns and entropy; `[REDACTED: type]`, warned, logged)"; secrets.txt: "The original is
    in no file of the lab", and a path of secrets in files is refused.
    """
    token = "ghp_" + "Zk3vQ9tLw2XbR7mYc5NdE8sHu4Jf6Gp1Ao0T"
    key = "q7Rz81LmXw" + "Vt40KcYb" + "92PdHsNe6u"
    with memlab.open(tmp_path / "agent.lab", pack="workbench") as lab:
        agent = lab.agents("coder", project="ops")
        kept = agent.remember([
            {"text": f"nightly job on the build box pushes tags with {token}, Ravi set it up", "kind": "context"},
            {"text": f"weather widget is configured with api_key: {key} in staging", "kind": "context"},
        ])
        assert {finding[0] for finding in kept.redacted} == set(kept.standing)
        texts = " ".join(lab.memories["text"].to_list())
        assert texts.count("[REDACTED: ") == 2
        assert "nightly job on the build box" in texts and token not in texts and key not in texts
        with pytest.raises(PrivacyError):
            agent.remember("see the settings of staging", files=[".env"])
    for path in (tmp_path / "agent.lab").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert token.encode() not in data and key.encode() not in data


@pytest.mark.long
def test_15_the_same_again_is_one_memory_and_another_number_is_another(lab):
    """An agent that notes the same thing twice leaves one memory; a note that differs in its port is a second one.

    Design: "near-duplicates (> 0.92 against the top 3) merge or skip"; systems.txt: "Under workbench what differs in a
    number (a port, a version) is another memory".
    """
    agent = lab.agents("coder", project="web", session="mon")
    old = agent.remember("Integration tests need Docker running on the laptop", kind="gotcha")
    again = agent.remember(
        [{"text": "Integration tests need Docker running on the laptop!", "kind": "gotcha"}], linking="now"
    )
    assert len(again.ids) == 0 and again.standing == (old.id,)
    assert again.outcomes["outcome"][0] in ("merged", "skipped")
    agent.remember("The preview server listens on port 4173", kind="environment-quirk", linking="now")
    other = agent.remember("The preview server listens on port 4180", kind="environment-quirk", linking="now")
    assert lab.memories.height == 3
    assert "4180" in other.text


def test_16_a_change_of_mind_takes_the_old_convention_out(lab):
    """When an agent notes that the repository indents with spaces, the convention of tabs goes out and is named.

    Design: "contradictions deprecate the old one and say so ("Updated: tabs -> spaces")"; reference-lab: outcomes has a
    row "superseded" with of and why.
    """
    agent = lab.agents("coder", project="api")
    old = agent.remember("The repository indents with tabs", kind="convention")
    kept = agent.remember([{"text": "The repository indents with spaces", "kind": "convention"}], linking="now")
    gone = kept.outcomes.filter(pl.col("outcome") == "superseded")
    assert gone["of"].to_list() == [old.id]
    assert gone["why"][0]
    shown = lab.recall("tabs or spaces: how does the repository indent?", project="api").ids
    assert kept.ids[0] in shown and old.id not in shown
    context = lab.context("reformat main.go", project="api", session="later").text
    assert "spaces" in context and "with tabs" not in context


def test_17_an_agent_has_limits_and_one_project(lab):
    """The fifty-first memory of a session and a text over 2 KB are refused whole, and so is another agent's project.

    Design: "50 memories a session, 2 KB each; an agent writes only to its own project"; reference-lab: "InputError ...
    nothing is stored then", reference-agents: NotPermitted.
    """
    agent = lab.agents("coder", project="api", session="mon")
    names = [f"handler number {number} of the router lives in routes/r{number}.py" for number in range(51)]
    with pytest.raises(InputError):
        agent.remember(names, linking="off")
    assert lab.memories.height == 0
    assert len(agent.remember(names[:50], linking="off").ids) == 50
    with pytest.raises(InputError):
        agent.remember(names[50], linking="off")
    fresh = lab.agents("coder", project="api", session="tue")
    with pytest.raises(InputError):
        fresh.remember("the log said " + "timeout again " * 220)
    with pytest.raises(NotPermitted):
        fresh.remember("billing retries thrice", project="billing")
    assert fresh.remember(names[50], linking="off").text == names[50]
    assert lab.memories.height == 51


@pytest.mark.long
def test_18_a_log_is_loaded_whole_and_the_session_says_what_it_taught(lab):
    """A hundred and more turns come in uncut though many say the same; the session's lessons are stored once.

    Design: "Bulk ingest of logs is exempt and never drops turns. After a session: compress the log ..., extract,
    de-duplicate"; howto-load and howto-extract for the calls.
    """
    talk = [{"role": "user", "content": "The build on CI is red again, can you have a look?"}]
    for _ in range(60):
        talk += [{"role": "assistant", "content": "Still running, no news."}, {"role": "user", "content": "ok"}]
    talk.append({"role": "assistant", "content": "The root cause was a stale lock file in the pip cache folder."})
    talk.append({"role": "assistant", "content": "Don't use the shared cache on the arm runners."})
    loaded = lab.load(talk, project="api", session="red build", progress=False)
    assert loaded.count("added") == len(talk)
    assert lab.memories.filter(pl.col("kind") == "turn").height == len(talk)
    learned = lab.agents.end_session("red build", agent="coder", project="api")
    lessons = lab.memories.filter(pl.col("kind") != "turn")
    assert any("lock file" in text for text in lessons["text"].to_list())
    assert learned.text
    lab.agents.end_session("red build", agent="coder", project="api")
    assert lab.memories.filter(pl.col("kind") != "turn").height == lessons.height
    assert lab.memories.filter(pl.col("kind") == "turn").height == len(talk)


@pytest.mark.long
def test_19_vectors_of_another_model_are_never_mixed(tmp_path):
    """A lab with vectors of one model refuses another, until told to embed anew; then the other one answers.

    Design: "Vectors carry model and dimension; a query sees only the active model's; a switch re-embeds";
    howto-bring-an-embedder: "Another embedder is refused, unless every memory is to be embedded again".
    """
    path = tmp_path / "agent.lab"
    with memlab.open(path, pack="workbench") as lab:
        note = lab.remember("feature flags are read once at boot, restart after a change", kind="gotcha")
        lab.remember("Hanne owns the translations", kind="context")
        shipped = lab.io.embedder.fingerprint
    with pytest.raises(EmbedderMismatch):
        memlab.open(path, embedder=bag)
    with memlab.open(path, embedder=bag, reembed=True) as lab:
        assert lab.io.embedder.fingerprint != shipped
        hits = lab.recall("restart after a change of feature flags")
        assert hits[0].id == note.id
        assert hits.frame["similarity"][0] > 0.5
        assert lab.memories.height == 2
    with pytest.raises(EmbedderMismatch):
        memlab.open(path)


@pytest.mark.long
def test_20_one_writes_many_read_and_three_backups_are_kept(tmp_path, clock):
    """While one lab writes, a reader sees all and writes nothing; of five backups three stay, and one can be put back.

    Design: "One writer, many readers; safe online backup daily and on close, three kept; integrity check on open";
    howto-keep-a-lab-safe and reference-io for the calls.
    """
    path = tmp_path / "agent.lab"
    notes = [
        "grafana dashboards live in infra/dash", "Samir reviews anything that touches payments",
        "the e2e suite needs LANG=C", "flaky: test_inbox on Fridays", "protobuf is pinned below 5",
    ]
    backups = []
    with memlab.open(path, pack="workbench", clock=clock) as lab:
        for note in notes:
            lab.remember(note, kind="context", project="ops")
            clock.advance(days=1)
            backups.append(lab.io.backup())
        with memlab.open(path, clock=clock, read_only=True) as reader:
            assert reader.recall("who reviews payments?", project="ops")[0].text == notes[1]
            with pytest.raises(ReadOnlyLab):
                reader.remember("me too", kind="context")
    assert [backup.path.exists() for backup in backups] == [False, False, True, True, True]
    assert memlab.check(path).sound
    memlab.restore(path, backups[2].path)
    with memlab.open(path, clock=clock) as lab:
        assert sorted(lab.memories["text"].to_list()) == sorted(notes[:3])


@pytest.mark.long
def test_21_a_correction_then_a_flag_then_second_thoughts(lab):
    """A convention is corrected; the corrected one is flagged as wrong, leaves, brings up the old one, and comes back.

    Design: "flag it with a reason, it leaves injection, memories joined to it by `supersedes` in either direction come
    up for review, it can be restored"; howto-correct: "Another text is another memory, which supersedes the first".
    """
    old = lab.remember("Releases are cut on Tuesday mornings by whoever is on call", kind="convention", project="api")
    new = lab.edit(old, text="Releases are cut on Thursday mornings by whoever is on call")
    query = "when are releases cut, on which mornings?"
    shown = lab.recall(query, project="api").ids
    assert new.id in shown and old.id not in shown
    flagged = lab.forget(new.id, how="deprecate", reason="the platform team cuts them now")
    assert new.id in flagged.ids
    assert old.id in flagged.review["memory_id"].to_list()
    assert new.id not in lab.recall(query, project="api").ids
    assert "Thursday" not in lab.context("cut a release", project="api", session="mon").text
    lab.restore(new.id)
    assert new.id in lab.recall(query, project="api").ids


@pytest.mark.long
def test_22_a_project_is_exported_deleted_and_has_thirty_days(tmp_path, shop, clock):
    """A project is exported and deleted: its map goes at once, its memories can be had back for 30 days, then are due.

    Design: "Soft delete with 30 days of grace, for a memory or a whole project (its map goes at once)", "Export all
    (JSON and Markdown), delete all"; reference-lab for delete, reference-upkeep for due, reference-io for export.
    """
    with memlab.open(tmp_path / "agent.lab", pack="workbench", clock=clock) as lab:
        lab.agents.modules.scan(shop, project="shop")
        note = lab.remember("coupon codes are case sensitive, sadly", kind="gotcha", project="shop")
        files = [
            lab.io.export(tmp_path / "all.jsonl", format="jsonl"),
            lab.io.export(tmp_path / "all.md", format="markdown"),
        ]
        lab.forget(project="shop", how="delete")
        assert "shop" not in lab.agents.modules.projects()
        assert note.id not in lab.recall("coupon codes").ids
        clock.advance(days=29)
        assert note.id in lab.restore(project="shop").ids
        lab.forget(project="shop", how="delete")
        clock.advance(days=31)
        assert lab.upkeep.maintain(progress=False).due["id"].to_list() == [note.id]
    for file in files:
        back = memlab.load(file, progress=False)
        assert back.memories["text"].to_list() == ["coupon codes are case sensitive, sadly"]


@pytest.mark.long
def test_23_what_memory_was_worth_is_counted(lab, clock):
    """A gotcha found out in a long session is injected in two others and helps: tokens are saved, and it is listed.

    Design: "tokens of discovery saved (with memory against without), memories injected, ... memories referenced",
    "analytics (most common gotchas)"; howto-context, What it was worth.
    """
    talk = [
        {"role": "user" if number % 2 else "assistant",
         "content": f"attempt {number}: traced the duplicate mails through the queue, the broker, the worker and the "
                    f"template once more, still no idea who sends the second one at minute {number}"}
        for number in range(60)
    ]
    lab.load(talk, project="mail", session="mon", progress=False)
    clock.advance(hours=2)
    found = lab.agents("coder", project="mail", session="mon").remember(
        "duplicate mails: worker/send.py acks after sending, so a slow send is delivered twice", kind="gotcha",
        files=["worker/send.py"],
    )
    for session in ("tue", "wed"):
        clock.advance(days=1)
        context = lab.context("duplicate mails from worker/send.py", project="mail", session=session, budget=250)
        hit = next(hit for hit in context.hits if hit.id == found.id)
        lab.feedback(hit, "success")
    metrics = lab.agents.metrics()
    assert metrics["contexts"] == 2
    assert metrics["tokens-saved"] > 0
    assert metrics.gotchas.height == 1


def test_24_readers_members_and_owners(lab):
    """A reader writes nothing, a member changes only its own and sees no other project, an owner changes all it sees.

    Design: "Owner: all on own; member: reads team, writes own, deletes no one else's; ... cross-tenant reads return
    nothing"; howto-agents, Roles.
    """
    coder = lab.agents("coder", project="api")
    note = coder.remember("pagination starts at 1, not 0, in every list endpoint", kind="gotcha")
    lab.agents("clerk", project="billing").remember("pagination of invoices ends at 500", kind="gotcha")
    helper = lab.agents("helper", project="api")
    assert helper.recall("pagination of list endpoints").ids == (note.id,)
    with pytest.raises(NotPermitted):
        helper.forget(note)
    with pytest.raises(NotPermitted):
        helper.recall("pagination of invoices", project="billing")
    with pytest.raises(NotPermitted):
        lab.agents("guest", project="api", role="reader").remember("hello from the guest")
    lab.agents("lead", project="api", role="owner").forget(note)
    assert note.id not in lab.recall("pagination of list endpoints").ids
    assert lab.log.filter(pl.col("memories").list.contains(note.id)).height >= 2


@pytest.mark.long
def test_25_memory_is_off_for_one_project(lab):
    """With memory off for a project it says so, stores and shows nothing there, and all others go on as before.

    Design: "memory says it is unavailable and never writes elsewhere, the agent goes on", "off per project";
    howto-agents, Switch memory off.
    """
    api = lab.remember("rate limit headers are stripped by the gateway", kind="gotcha", project="api")
    web = lab.remember("rate limit banner on the pricing page only goes away after a reload", kind="gotcha",
                       project="web")
    lab.agents.switch_off("api", reason="under audit")
    hits = lab.recall("rate limit headers", project="api")
    assert len(hits) == 0 and hits.off
    with pytest.raises(MemoryOff):
        lab.remember("gateway is now envoy", kind="context", project="api")
    assert lab.recall("rate limit headers").ids == (web.id,)
    assert lab.memories.height == 2
    lab.agents.switch_on("api")
    assert api.id in lab.recall("rate limit headers", project="api").ids
