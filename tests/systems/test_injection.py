"""What an agent is given for its prompt, in the words of the systems: tiers, forms, triggers, nothing twice."""

import polars as pl
import pytest

import memlab
from memlab.subjects.reading.sentences import count_tokens

API = {"project": "api", "session": "monday"}


@pytest.fixture
def workbench(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        yield lab


@pytest.fixture
def project(workbench):
    """Return the lab of a code base with lessons in two modules, and rules that apply everywhere."""
    workbench.remember(
        [
            {"text": "Use tabs for indentation", "kind": "convention", **API},
            {"text": "Sessions are kept in cookies, not in JWT", "kind": "decision", **API},
            {"text": "Ask before a table is dropped", "kind": "preference", "pinned": True, **API},
            {
                "text": "When several tabs are open each of them refreshes the token, and all but one are logged out",
                "summary": "Token refresh races with several tabs: take the lock first",
                "kind": "gotcha",
                "files": ["src/auth/refresh.py"],
                **API,
            },
            {
                "text": "Invoices are rounded once, at the end",
                "kind": "gotcha",
                "files": ["src/billing/sum.py"],
                **API,
            },
            {"text": "The payments sandbox is down on Sundays", "kind": "environment-quirk", **API},
        ],
        linking="off",
    )
    return workbench


def tiers(context):
    return dict(context.frame.select("memory_id", "tier").iter_rows())


def test_tier_1_is_there_for_every_task(project):
    """Pinned, conventions and decisions."""
    context = project.context("paint the bike shed", project="api")
    assert {id for id, tier in tiers(context).items() if tier == 1} == {1, 2, 3}


def test_tier_2_is_what_belongs_to_the_modules_that_the_task_names(project):
    assert tiers(project.context("mend the auth module", project="api", log=False))[4] == 2
    assert (
        tiers(project.context("mend it", project="api", files=["src/auth/login.py"], log=False))[4]
        == 2
    )
    other = tiers(project.context("mend the billing module", project="api", log=False))
    assert (other[5], other.get(4, 3)) == (2, 3)


@pytest.mark.long
def test_the_map_is_in_tier_1_and_the_modules_of_the_task_with_their_files_and_tests_in_tier_2(
    project, tmp_path
):
    for name in (
        "auth/refresh.py",
        "auth/login.py",
        "billing/sum.py",
        "billing/vat.py",
        "tests/test_login.py",
    ):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text(
            "from billing import sum" if name.startswith("auth") else ""
        )
    project.agents.modules.scan(tmp_path / "src", project="api")
    context = project.context("who may log in?", project="api", log=False)
    assert "- Modules of api: auth, billing" in context.text.splitlines()
    project.agents.modules.describe("auth", project="api", description="Who a user is.")
    project.remember("Keys turn over at noon", kind="gotcha", files=["auth/login.py"], **API)
    context = project.context("a login fails", project="api")
    assert context.modules == ("auth",)
    about = "- auth: Who a user is; files auth/login.py, auth/refresh.py; tests tests/test_login.py; imports billing"
    assert about in context.text.splitlines()
    assert tiers(context)[7] == 2
    assert count_tokens(project.context("a login fails", project="api", budget=60).text) <= 60


def test_a_gotcha_has_its_file_above_and_its_summary_below(project):
    lines = project.context("mend src/auth/refresh.py", project="api").text.splitlines()
    at = lines.index("[GOTCHA] src/auth/refresh.py")
    assert lines[at + 1] == "! Token refresh races with several tabs: take the lock first"


def test_a_warning_without_a_file_is_a_line_of_its_own(project):
    assert (
        "! The payments sandbox is down on Sundays"
        in project.context("pay on Sunday", project="api").text
    )


@pytest.mark.long
def test_tiers_1_and_2_take_600_and_1200_tokens_and_a_result_of_tier_3_takes_30(workbench):
    rules = [f"Rule {n}: {'some words about style ' * 6}{n}" for n in range(60)]
    workbench.remember(
        [{"text": text, "kind": "convention", **API} for text in rules], linking="off"
    )
    results = [f"In file {n} {'something is strange ' * 6}{n}" for n in range(5)]
    rows = [
        {"text": text, "kind": "gotcha", "files": [f"src/auth/f{n}.py"], **API}
        for n, text in enumerate(results)
    ]
    workbench.remember(rows, linking="off")
    workbench.remember(
        [f"Nothing special about {n} {'and its strange style ' * 6}" for n in range(40)]
    )
    task = "the auth module: nothing special about its strange style"
    spent = workbench.context(task, project="api", budget=4000).frame
    of_tier = dict(spent.group_by("tier").agg(pl.col("tokens").sum()).iter_rows())
    assert 540 <= of_tier[1] <= 600 + spent.filter(spent["tier"] == 1).height  # each is rounded up
    assert of_tier[2] <= 1200
    assert spent.filter(spent["tier"] == 3)["tokens"].max() <= 30


def test_1800_tokens_are_tiers_1_and_2(project):
    assert project.context("anything", project="api").budget == 1800
    assert (
        project.policies.pack.count("tier-1-tokens") + project.policies.pack.count("tier-2-tokens")
        == 1800
    )


def test_never_the_same_memory_twice_in_a_session(project):
    task = "mend the token refresh in src/auth/refresh.py"
    first = project.context(task, project="api", session="tuesday")
    again = project.context(f"{task} again", project="api", session="tuesday")
    assert set(first.frame["memory_id"]).isdisjoint(again.frame["memory_id"])
    assert "the session has received it" in set(again.left_out["why"])
    assert set(project.context(task, project="api", session="wednesday").frame["memory_id"]) >= {
        1,
        2,
        3,
        4,
    }


@pytest.mark.long
@pytest.mark.parametrize("pack", ["cascade", "memlab", "workbench", "companion"])
def test_a_trigger_surfaces_a_warning_and_a_procedure(pack, clock):
    """Quoted triggers surface a memory for any task: "ship it" a procedure, and "println!" a warning."""
    with memlab.open(pack=pack, clock=clock) as lab:
        lab.remember([f"Something of no interest, number {n}" for n in range(40)], linking="off")
        lab.remember("Never print secrets", kind="negative", triggers=["println!"])
        lab.remember(
            "How to deploy",
            kind="procedure",
            title="Deploy",
            triggers=["ship it"],
            steps=["run the tests", "tag the commit", "push the tag"],
            warnings=["push on a Friday"],
        )
        text = lab.context("ship it, and leave println! out").text
        assert "! Never print secrets" in text
        assert (
            "Deploy: 1. run the tests; 2. tag the commit; 3. push the tag. Beware: push on a Friday"
            in text
        )
        assert "Never print secrets" not in lab.context("plant a tree").text or pack in (
            "memlab",
            "workbench",
        )


def test_a_procedure_lists_its_requirements_and_a_warning_keeps_its_words(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        lab.remember(
            "Rotate the TLS certificate",
            kind="procedure",
            title="rotate-cert",
            triggers=["certificate expires"],
            steps=["issue", "install"],
            prerequisites=["vault login"],
            warnings=["never on a Friday", "takes ten minutes of downtime"],
        )
        text = lab.context("our certificate expires tomorrow").text
    wanted = "rotate-cert: (first: vault login) 1. issue; 2. install. Beware: never on a Friday; takes ten minutes"
    assert wanted in text


@pytest.mark.long
def test_facts_of_an_entity_that_the_task_names_are_one_line(clock):
    """USER CONTEXT: prefers dark mode ..."""
    with memlab.open(pack="factgraph", clock=clock) as lab:
        lab.facts.entities.declare("Ada Lovelace", type="person", aliases=["Ada"])
        lab.facts.add("Ada", "lives-in", object="Oslo", confidence=0.95)
        lab.facts.add("Ada", "works-at", object="Initech", confidence=0.9)
        lab.facts.add("User", "prefers:theme", "dark")
        text = lab.context("write to Ada about the theme that the user likes").text
        (line,) = [line for line in text.splitlines() if "ADA LOVELACE CONTEXT:" in line]
        assert "lives in Oslo (staged)" in line
        assert "works at Initech (staged)" in line
        assert "USER CONTEXT: prefers dark (theme) (staged)." in text


def test_a_context_reports_omissions_with_reasons(project):
    small = project.context("mend src/auth/refresh.py on Sunday", project="api", budget=110)
    assert count_tokens(small.text) == small.tokens <= 110
    left = dict(small.left_out.select("memory_id", "why").iter_rows())
    assert set(left) | set(small.frame["memory_id"]) >= {1, 2, 3, 4}
    assert any(why.startswith("no room") for why in left.values())


@pytest.mark.long
def test_a_context_file_for_a_terminal_agent(project, run, tmp_path):
    path = project.io.export(tmp_path / "kept.jsonl")
    with memlab.open(tmp_path / "a", pack="workbench") as lab:
        lab.load(path)
    result = run(
        "context", tmp_path / "a", "mend the auth module", "--project", "api", "--budget", "300"
    )
    assert result.exit_code == 0
    assert "[GOTCHA] src/auth/refresh.py\n! Token refresh races" in result.stdout
