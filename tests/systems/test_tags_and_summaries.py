"""Tags inferred from paths, topics and entities; a summary of 25 to 35 tokens at write."""

import pytest

import memlab
from memlab.kernel.policies import load_pack
from memlab.subjects.reading.sentences import count_tokens
from memlab.subjects.reading.tags import summary_of, tags_of

LONG = (
    "We looked at the logs for an hour. The cache of the resolver becomes stale whenever a deploy of the gateway "
    "restarts the workers out of order, so the resolver has to be restarted last. Nobody had seen that before."
)


def test_cascade_infers_tags_from_paths(clock):
    with memlab.open(pack="cascade", clock=clock) as lab:
        memory = lab.remember("handlers return early", files=["src/auth/handler.rs"], tags=["mine"])
        assert memory.tags == ("mine", "rust", "auth")
        assert lab.graph.tags().select("tag", "memories").rows() == [
            ("auth", 1),
            ("mine", 1),
            ("rust", 1),
        ]


def test_topics_and_entities_where_the_pack_asks_for_all(clock, tmp_path):
    path = tmp_path / "tagging.hy"
    path.write_text(
        '(require memlab.dialect *)\n(pack tagging "Tags." :inherits memlab)\n(setting infer-tags "all")\n'
    )
    with memlab.open(pack=path, clock=clock) as lab:
        lab.facts.add(
            "Ada", "works-on", object="Login Service", text="Ada fixed the login and its tests"
        )
        assert lab[1].tags == ("ada", "login-service", "auth", "testing")
        lab.remember("a turn about tests", kind="turn")
        assert lab[2].tags == ()


def test_a_summary_at_write_where_the_pack_asks_for_it(clock, tmp_path):
    path = tmp_path / "summing.hy"
    path.write_text(
        '(pack summing "Summaries." :inherits workbench)\n(setting write-summary true)\n'
    )
    with memlab.open(pack=path, clock=clock) as lab:
        rows = [{"text": LONG}, {"text": "short"}, {"text": LONG + "!", "summary": "mine"}]
        lab.remember(
            [*rows, {"text": "do it", "kind": "procedure", "steps": ["one"]}], linking="off"
        )
        summary, short, given, procedure = lab.memories["summary"].to_list()
        assert 25 <= count_tokens(summary) <= 35
        assert summary.startswith("The cache of the resolver becomes stale")
        assert (short, given, procedure) == ("short", "mine", None)


@pytest.mark.long
@pytest.mark.parametrize("pack", ["memlab", "companion", "factgraph", "associative"])
def test_other_packs_add_nothing(clock, pack):
    with memlab.open(pack=pack, clock=clock) as lab:
        lab.remember(LONG, files=["src/auth/handler.rs"])
        assert lab[1].tags == ()
        assert lab.memories["summary"].to_list() == [None]


def test_a_pack_without_the_settings_has_its_hash(clock):
    assert load_pack("companion").settings["infer-tags"] == "off"


@pytest.mark.parametrize(
    "text", ["", " ", "x" * 5_000, "a. " * 5_000, "\u00e9" * 400, "one two " * 900]
)
def test_whatever_the_text_a_summary_fits(text):
    assert count_tokens(summary_of(text)) <= 35
    assert len(tags_of(text, ["", "/", "..", "a/b", "x" * 999])) <= 6
