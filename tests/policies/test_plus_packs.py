"""The ``-plus`` packs have the life cycle of their design, and rank like the default pack with one more term."""

import numpy as np
import pytest

import memlab
from memlab.errors import InputError, PolicyNameError, PolicySyntaxError
from memlab.kernel.policies import load_pack, pack_from_sources, pack_names

DESIGNS = ("cascade", "companion", "workbench", "associative", "factgraph")
LIFE = (
    "admit",
    "link",
    "resolve",
    "half-life",
    "retention",
    "reinforce",
    "promote",
    "forget",
    "label",
    "consolidate",
)
RANKING = ("seed-score", "cut")


@pytest.mark.parametrize("name", DESIGNS)
class TestEach:
    def test_a_plus_pack_is_listed_and_inherits_its_design(self, name):
        assert f"{name}-plus" in pack_names()
        plus, design, default = load_pack(f"{name}-plus"), load_pack(name), load_pack("memlab")
        for slot in (*LIFE, "prune", "inject", "explore"):
            assert plus.policies[slot].hash == design.policies[slot].hash, slot
        for slot in RANKING:
            assert plus.policies[slot].hash == default.policies[slot].hash, slot
        for setting in (
            "linking",
            "forgotten-as",
            "initial-confidence",
            "merge-gain",
            "base-half-life",
            "triggers",
        ):
            assert plus.settings[setting] == design.settings[setting]
        for setting in ("dense-candidates", "lexical-candidates", "pool", "seeds", "limit"):
            assert plus.settings[setting] == default.settings[setting]

    @pytest.mark.long
    def test_without_its_weights_it_scores_as_the_default_pack(self, name):
        pack = load_pack(f"{name}-plus")
        policy = pack.policies["recall-score"]
        with memlab.open(pack=pack) as lab:
            for text in (
                "I keep bees on the roof",
                "The roof was painted red",
                "My sister sells honey",
            ):
                lab.remember(text)
            slate = lab.recall("who keeps bees?", log=False).slate
            none = lab.policies.install("recall-score", policy.source, helpers=policy.helpers)
            assert none.hash == policy.hash, "the text is complete"
            zero = dict.fromkeys(policy.params, 0.0)
            lab.policies.install("recall-score", policy.source, helpers=policy.helpers, params=zero)
            bare = lab.recall("who keeps bees?", log=False).slate
            default = load_pack("memlab").policies["recall-score"]
            expected = lab.recall(
                "who keeps bees?", log=False, pack=pack.with_policy("recall-score", default)
            ).slate
        assert np.allclose(bare.scores, expected.scores, atol=1e-12)
        assert (slate.scores > bare.scores).any()

    def test_a_plus_pack_has_no_policy_known(self, name):
        with memlab.open(pack=f"{name}-plus") as lab:
            lab.remember("I keep bees on the roof")
            hits = lab.recall("who keeps bees?", log=False)
            assert hits.known is None
            assert "likely" not in repr(hits)

    def test_its_texts_make_it_again(self, name, tmp_path):
        pack = load_pack(f"{name}-plus")
        again = pack_from_sources(pack.sources)
        assert (again.hash, again.sources) == (pack.hash, pack.sources)
        with memlab.open(tmp_path / "lab", pack=pack) as lab:
            lab.policies.use("memlab")
            lab.policies.rollback_pack() if hasattr(
                lab.policies, "rollback_pack"
            ) else lab.policies.use(pack)
        with memlab.open(tmp_path / "lab") as lab:
            assert lab.policies.pack.hash == pack.hash


class TestImports:
    def pack(self, *forms):
        return load_pack(f"(pack trial) {' '.join(forms)}")

    def test_slots_and_settings_are_those_of_the_other_pack(self):
        pack, other = (
            self.pack("(from-pack companion eligible spread seeds linking)"),
            load_pack("companion"),
        )
        assert pack.policies["spread"].hash == other.policies["spread"].hash
        assert pack.policies["eligible"].hash == other.policies["eligible"].hash
        assert (pack.settings["seeds"], pack.settings["linking"]) == (
            other.settings["seeds"],
            "now",
        )
        assert other.sources[0] in pack.sources
        assert pack_from_sources(pack.sources).hash == pack.hash

    def test_a_policy_reads_the_value_of_another_pack(self):
        pack = self.pack(
            "(from-pack companion recall-score :as vividness)",
            '(defpolicy recall-score [vividness pinned] "Twice as vivid." (if pinned 1 (* 2 vividness)))',
        )
        row = {
            "nearness": 0.5,
            "kind": "event",
            "strength": 80.0,
            "emotional-weight": 0.0,
            "idle-days": 4.0,
        }
        expected = load_pack("companion").policies["recall-score"].row(row)
        assert pack.policies["recall-score"].row({**row, "pinned": False}) == 2 * expected
        assert pack.policies["recall-score"].row({**row, "pinned": True}) == 1
        assert pack.policies["recall-score"].doc == "Twice as vivid."

    def test_a_pack_may_import_from_one_that_imports(self):
        pack = self.pack("(from-pack cascade-plus recall-score spread)")
        assert (
            pack.policies["recall-score"].hash
            == load_pack("cascade-plus").policies["recall-score"].hash
        )
        assert pack_from_sources(pack.sources).hash == pack.hash

    def test_the_logged_version_of_the_other_pack_decides(self):
        pack = self.pack("(from-pack companion spread)")
        old = tuple(
            text.replace("(* 0.5 activation)", "(* 0.25 activation)") for text in pack.sources
        )
        assert old != pack.sources
        assert pack_from_sources(old).policies["spread"].hash != pack.policies["spread"].hash

    def test_known_comes_with_its_own_score_alone(self):
        both = self.pack("(from-pack memlab recall-score known known-floor)")
        assert both.policies["known"].hash == load_pack("memlab").policies["known"].hash
        assert both.tells_known
        with pytest.raises(
            PolicyNameError, match="known is calibrated for the recall-score of memlab"
        ):
            self.pack(
                "(from-pack memlab known)", "(defpolicy recall-score [similarity] similarity)"
            )

    @pytest.mark.parametrize(
        ("forms", "message", "kind"),
        [
            ("(from-pack memlab)", "An import names a pack", PolicySyntaxError),
            ("(from-pack memlab spread :as)", "A name must follow :as", PolicySyntaxError),
            ("(from-pack memlab 3)", "This form is not allowed here", PolicySyntaxError),
            ("(from-pack memlab sprad)", "spread", PolicyNameError),
            ("(from-pack memlab spread spread)", "spread is imported twice", PolicyNameError),
            ("(from-pack memlab cut :as a spread :as a)", "a is imported twice", PolicyNameError),
            ("(from-pack memlab seeds :as many)", "policy slot", PolicyNameError),
            ("(from-pack memlab cut :as similarity)", "similarity is a feature", PolicyNameError),
            (
                "(from-pack memlab seeds) (setting seeds 3)",
                "seeds is imported, but the file",
                PolicyNameError,
            ),
            ("(from-pack nobody seeds)", "nobody", InputError),
            ("(from-pack trial seeds)", "trial", InputError),
        ],
    )
    def test_mistakes(self, forms, message, kind):
        with pytest.raises(kind, match=message):
            self.pack(forms)

    def test_a_name_that_the_slot_cannot_give_is_an_error_there(self):
        with pytest.raises(PolicyNameError, match="Unknown input"):
            self.pack(
                "(from-pack memlab recall-score :as all)",
                '(defpolicy promote [all] (if (> all 0) "active" "staged"))',
            )
