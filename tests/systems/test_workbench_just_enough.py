"""A context holds just enough: what belongs to the task's modules and what the task is about, and no more."""

import pytest

import memlab

AUTH = [
    ("Refresh token is not validated", "gotcha", "src/auth/tokens.ts"),
    ("Users are logged out when two tabs refresh at once", "gotcha", "src/auth/session.ts"),
]
BILLING = [
    ("Invoices round half to even", "gotcha", "src/billing/invoice.ts"),
    (
        "Stripe webhooks arrive twice, so handlers are idempotent",
        "gotcha",
        "src/billing/webhooks.ts",
    ),
]
TASK = "bug in the auth system: logged out after 5 minutes"


@pytest.fixture
def workbench(clock):
    with memlab.open(pack="workbench", clock=clock) as lab:
        rows = [
            {"text": text, "kind": kind, "files": [file]} for text, kind, file in AUTH + BILLING
        ]
        jobs = [f"Job {letter} writes to bucket {letter}-out" for letter in "abcdefghij"]
        rows += [{"text": text, "kind": "session-insight"} for text in jobs]
        lab.remember([{**row, "project": "p"} for row in rows], linking="off")
        yield lab


def texts(context):
    return [hit.text for hit in context.hits]


def test_an_auth_task_injects_its_module_and_nothing_of_billing_or_of_nightly_jobs(workbench):
    context = workbench.context(TASK, project="p")
    assert set(texts(context)) == {text for text, _, _ in AUTH}
    assert "the policy inject gives it no priority" in set(context.left_out["why"])


def test_a_memory_without_a_file_is_injected_if_the_task_is_about_it(workbench):
    results = texts(workbench.context("job c does not write to its bucket", project="p"))
    assert "Job c writes to bucket c-out" in results
    assert not {text for text, _, _ in AUTH + BILLING} & set(results)


def test_a_task_about_another_module_by_its_words_alone_finds_it(workbench):
    results = texts(workbench.context("an invoice is rounded wrongly", project="p"))
    assert "Invoices round half to even" in results
    assert "Refresh token is not validated" not in results


def test_a_task_that_nothing_fits_has_the_rules_alone(workbench):
    rule = workbench.remember(
        "Use tabs for indentation", kind="convention", project="p", linking="off"
    )
    assert [
        hit.id for hit in workbench.context("translate the manual into Welsh", project="p").hits
    ] == [rule.id]


@pytest.mark.long
def test_the_floor_is_a_parameter_of_the_policy(workbench):
    source = workbench.policies.pack.policies["inject"].source
    workbench.policies.install("inject", source.replace("(param :fits 0.3", "(param :fits -1"))
    results = texts(workbench.context(TASK, project="p"))
    assert sum(text.startswith("Job") for text in results) > 2
    assert not {text for text, _, _ in BILLING} & set(results)


class TestNothingTwice:
    """Tier 3: what an agent asks for never holds a memory twice in a session."""

    QUERY = "job that writes to a bucket"

    def test_a_second_recall_shows_what_is_new(self, workbench):
        agent = workbench.agents("coder", project="p", session="monday")
        first, second = (agent.recall(self.QUERY, limit=4) for _ in range(2))
        assert len(first) == len(second) == 4
        assert set(first.ids).isdisjoint(second.ids)
        assert set(second.repeated) == set(first.ids)
        assert "shown before" in repr(second)

    @pytest.mark.long
    def test_injected_memories_are_not_shown_again_and_shown_ones_not_injected(self, workbench):
        agent = workbench.agents("coder", project="p", session="monday")
        unique = set(agent.context(TASK).hits.ids)
        assert unique
        shown = set(agent.recall(TASK).ids)
        assert shown.isdisjoint(unique)
        assert shown.isdisjoint(agent.context(self.QUERY).hits.ids)

    def test_again_shows_all_and_other_sessions_and_agents_see_all(self, workbench):
        agent = workbench.agents("coder", project="p", session="monday")
        first = agent.recall(self.QUERY, limit=4)
        assert agent.recall(self.QUERY, limit=4, again=True).ids == first.ids
        for name, session in (("coder", "tuesday"), ("reviewer", "monday")):
            other = workbench.agents(name, project="p", session=session)
            assert other.recall(self.QUERY, limit=4).ids == first.ids

    @pytest.mark.long
    def test_the_record_survives_reopening(self, tmp_path, clock):
        for _ in range(2):
            with memlab.open(tmp_path / "lab", pack="workbench", clock=clock) as lab:
                if not len(lab):
                    lab.remember("Deploys go out on Tuesdays", project="p")
                hits = lab.agents("coder", project="p", session="monday").recall(
                    "when are deploys?"
                )
        assert (len(hits), hits.repeated) == (0, (1,))

    @pytest.mark.long
    def test_other_packs_repeat(self, clock):
        with memlab.open(clock=clock) as lab:
            lab.remember("Deploys go out on Tuesdays")
            agent = lab.agents("coder", session="monday")
            assert [len(agent.recall("when are deploys?")) for _ in range(2)] == [1, 1]
            assert len(agent.recall("when are deploys?", again=False)) == 1
            assert len(agent.recall("when are deploys?", again=False)) == 0

    def test_searches_are_no_contexts_in_the_metrics(self, workbench):
        agent = workbench.agents("coder", project="p", session="monday")
        agent.recall(self.QUERY)
        metrics = workbench.agents.metrics()
        assert (metrics["contexts"], metrics["searches"]) == (0, 1)


@pytest.mark.long
def test_metrics_have_latencies_and_an_unknown_saving_is_none(workbench):
    workbench.context(TASK, project="p")
    workbench.remember("One more thing", project="p")
    metrics = workbench.agents.metrics()
    assert all(metrics[f"latency-{part}"] > 0 for part in ("embedding", "search", "write"))
    assert metrics["tokens-injected"] > 0
    assert (metrics["tokens-discovery"], metrics["tokens-saved"]) == (None, None)


class TestRedaction:
    KEY = "the key is AKIAIOSFODNN7EXAMPLE"

    def test_the_excess_is_in_the_result_a_warning_and_the_log(self, workbench):
        with pytest.warns(memlab.RedactionWarning, match="AWS access key"):
            memory = workbench.remember(self.KEY, project="p")
        assert memory.redacted == ("AWS access key",)
        assert "AKIA" not in memory.text
        assert workbench[memory.id].redacted == ()
        assert workbench.log.filter(kind="remember")["what"][-1] == "redacted: AWS access key"

    @pytest.mark.long
    def test_agents_and_corrections_are_told_too(self, workbench):
        with pytest.warns(memlab.RedactionWarning):
            memory = workbench.agents("coder", project="p").remember(self.KEY)
        assert memory.redacted
        plain = workbench.remember("the key is in the vault", project="p")
        with pytest.warns(memlab.RedactionWarning):
            assert workbench.edit(plain, text=self.KEY + "!").redacted

    @pytest.mark.filterwarnings("error")
    def test_nothing_is_said_of_a_text_without_secrets(self, workbench):
        assert workbench.remember("the key is in the vault", project="p").redacted == ()
