"""Extensions: their declarations, where these are registered, and errors for missing extensions."""

import json
import math
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import memlab
from memlab import Extension, Feature, Setting, Slot
from memlab.errors import (
    ExtensionError,
    ExtensionWarning,
    InputError,
    MissingExtension,
    PolicyNameError,
    UnknownName,
)
from memlab.io.formats import Reader
from memlab.kernel.embedding import EmbedderSource
from memlab.kernel.extension import forget_extension, register_extension
from memlab.kernel.hooks import Hook, list_hooks
from memlab.kernel.policies import FEATURES, SETTINGS, load_pack
from memlab.kernel.recall import Stage
from memlab.kernel.recall._stages import own_stage
from memlab.kernel.state import EventType, Field, Projection
from memlab.kernel.verbs.corrections.replacing import Dependents
from memlab.kernel.verbs.seam import Accessor

OTHER = '(pack other "The longest first." :inherits memlab) (defpolicy recall-score [size] "Its length." size)'
BY_LENGTH = "(fn [similarity size] (+ (* 0 similarity) size))"


def size(pool):
    return [len(text) for text in pool.texts]


def feature(name="size", compute=size, **more):
    return Feature(
        name,
        more.pop("type", "num"),
        more.pop("stage", "memory"),
        "length",
        compute=compute,
        **more,
    )


def a_lab(path=None, **more):
    lab = memlab.open(path, **more)
    lab.remember("tabs", speaker="Emi")
    lab.remember("four spaces for every level", speaker="Bob")
    return lab


@pytest.mark.long
def test_a_feature_can_be_read_by_a_policy_and_is_logged_only_where_it_is():
    memlab.extend(Extension("sizes", "1.0", features=(feature(),)))
    with a_lab() as lab:
        lab.recall("tabs")
        lab.policies.install("recall-score", BY_LENGTH)
        hits = lab.recall("tabs")
        assert [hit.text for hit in hits] == ["four spaces for every level", "tabs"]
        candidates = lab.slates().candidates.collect()
        by_recall = candidates["size"].to_list()
        fingerprints = [
            json.loads(text) for text in lab.slates().decisions.collect()["fingerprints"]
        ]
    assert by_recall == [None, None, 4.0, 27.0]
    assert "size" not in fingerprints[0]
    assert fingerprints[1]["size"].endswith(" sizes 1.0")


@pytest.mark.long
def test_built_in_features_keep_their_fingerprints_and_packs_their_hashes():
    before = {name: load_pack(name).hash for name in memlab.packs()}
    known = load_pack("memlab").fingerprints("e")
    memlab.extend(
        Extension(
            "many",
            "2",
            features=(feature(),),
            settings=(Setting("pace", "num", "how fast", default=1.0),),
            slots=(
                Slot(
                    "urgent",
                    "whether it is urgent",
                    returns="bool",
                    stages=("memory",),
                    source="(fn [] False)",
                ),
            ),
        )
    )
    assert {name: load_pack(name).hash for name in memlab.packs()} == before
    after = load_pack("memlab").fingerprints("e")
    assert {name: after[name] for name in known} == known
    assert set(after) - set(known) == {"size"}


def test_a_pack_that_uses_an_extension_hashes_its_name_and_version():
    text = '(pack mine "faster" :inherits memlab) (setting pace 2)'
    hashes = set()
    for version in ("1", "2"):
        memlab.extend(
            Extension("paces", version, settings=(Setting("pace", "num", "how fast", default=1.0),))
        )
        hashes.add(load_pack(text).hash)
    assert len(hashes) == 2
    assert (
        load_pack('(pack mine "as fast" :inherits memlab) (setting pace 1)').hash
        == load_pack("memlab").hash
    )


def test_a_slot_at_its_default_adds_nothing_and_another_policy_does():
    slot = Slot(
        "urgent", "whether it is urgent", returns="bool", stages=("memory",), source="(fn [] False)"
    )
    memlab.extend(Extension("urgency", "1", slots=(slot,)))
    pack = load_pack("memlab")
    assert pack.policy("urgent").row({}) is False
    other = '(pack mine "urgent" :inherits memlab) (defpolicy urgent [importance] "Important ones." (> importance 0.8))'
    assert load_pack(other).hash != pack.hash


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"features": (feature("similarity"),)}, "similarity is declared by memlab"),
        ({"features": (feature(compute=None),)}, "has no function"),
        ({"features": (feature(stage="spread"),)}, "has the stage memory or query"),
        ({"features": (feature(), feature())}, "declares size twice"),
        ({"settings": (Setting("pace", "num", "how fast"),)}, "has no default"),
        ({"slots": (Slot("urgent", "whether"),)}, "has no default"),
        ({"readers": (Reader("csv", "tables", read=iter),)}, "csv is declared by memlab"),
        ({"readers": (Reader("vtt", "captions"),)}, "has no function"),
        ({"commands": (print,)}, "not a click.Command"),
        ({"widgets": (int,)}, "is no widget"),
    ],
)
def test_a_declaration_that_is_refused_leaves_nothing_behind(declared, message):
    good = Setting("calm", "bool", "whether it is calm", default=True)
    with pytest.raises(InputError, match=message):
        memlab.extend(Extension("bad", "1", **{"settings": (good,), **declared}))
    assert "calm" not in SETTINGS
    assert "bad" not in memlab.extensions()


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("A", "1"), ("a b", "1"), ("a" * 99, "1"), ("a", ""), ("a", "1 2"), ("a", 1)],
)
def test_names_and_versions_are_words(name, version):
    with pytest.raises(InputError):
        Extension(name, version)


def test_two_extensions_cannot_have_one_name_and_a_module_may_register_its_own_again():
    memlab.extend(Extension("sizes", "1", features=(feature(),)))
    memlab.extend(Extension("sizes", "2", features=(feature("width"),)))
    assert "size" not in FEATURES
    assert FEATURES["width"].owner == "sizes 2"
    with pytest.raises(InputError, match="Two extensions cannot have one name"):
        register_extension(Extension("sizes", "3"), "another.module")
    with pytest.raises(InputError, match="width is declared by the extension sizes 2"):
        memlab.extend(Extension("others", "1", features=(feature("width"),)))


def test_the_tables_are_read_only():
    for table in (memlab.FEATURES, memlab.SLOTS, memlab.SETTINGS):
        with pytest.raises(TypeError, match=r"memlab\.extend"):
            table["x"] = 1
        with pytest.raises(TypeError, match="read-only"):
            del table[next(iter(table))]


@pytest.mark.long
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda pool: [1.0], "shape"),
        (lambda pool: ["a"] * len(pool), "declares numbers"),
        (lambda pool: [math.nan] * len(pool), "NaN"),
        (lambda pool: [None] * len(pool), "NaN"),
        (lambda pool: 1 / 0, "ZeroDivisionError"),
        (lambda pool: 3.0, "shape"),
        (lambda pool: [[1.0]] * len(pool), "shape"),
        (lambda pool: None, "shape"),
    ],
)
def test_the_result_of_a_feature_is_checked_by_name(returned, message):
    memlab.extend(Extension("sizes", "1", features=(feature(compute=returned),)))
    with a_lab() as lab:
        lab.policies.install("recall-score", BY_LENGTH)
        with pytest.raises(
            ExtensionError, match=f"feature size of the extension sizes 1.*{message}"
        ):
            lab.recall("tabs")
        lab.policies.rollback("recall-score")
        assert lab.recall("tabs")


@pytest.mark.long
def test_a_nullable_feature_may_be_null_and_words_are_checked():
    memlab.extend(
        Extension(
            "sizes",
            "1",
            features=(
                feature(compute=lambda pool: [None, 2.0], nullable=True),
                feature(
                    "mood", compute=lambda pool: ["glad", "odd"], type="str", words=("glad", "sad")
                ),
            ),
        )
    )
    with a_lab() as lab:
        lab.policies.install("recall-score", "(fn [size] (if-null size 9))")
        assert [hit.score for hit in lab.recall("tabs")] == [9.0, 2.0]
        lab.policies.install("recall-score", '(fn [mood] (if (= mood "glad") 1 0))')
        with pytest.raises(ExtensionError, match="'odd', which is none of glad, sad"):
            lab.recall("tabs")


def test_a_feature_that_takes_ten_seconds_is_reported(monkeypatch):
    passed = [0.0]

    def slow(pool):
        passed[0] += 10
        return size(pool)

    memlab.extend(Extension("sizes", "1", features=(feature(compute=slow),)))
    with a_lab() as lab:
        lab.policies.install("recall-score", BY_LENGTH)
        monkeypatch.setattr("time.monotonic", lambda: passed[0])
        with pytest.warns(
            ExtensionWarning, match="feature size of the extension sizes 1 took 10 seconds"
        ):
            assert lab.recall("tabs")


def test_a_challenger_whose_feature_fails_is_left_out_of_the_recall():
    memlab.extend(Extension("sizes", "1", features=(feature(compute=lambda pool: 1 / 0),)))
    with a_lab() as lab:
        lab.challenge(OTHER)
        with pytest.warns(UserWarning, match="challenger other was left out"):
            assert lab.recall("tabs")


# -- labs that need an extension --------------------------------------------------------------------------------------


def _needing(path):
    memlab.extend(Extension("sizes", "1", features=(feature(),)))
    with a_lab(path) as lab:
        lab.policies.install("recall-score", BY_LENGTH, reason="longest first")
        lab.recall("tabs")


@pytest.mark.long
def test_a_lab_opens_without_an_extension_and_what_depends_on_it_says_so(tmp_path):
    _needing(tmp_path / "a.memlab")
    forget_extension("sizes")
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert len(lab.memories) == 2
        for asks in (
            lambda: lab.recall("tabs"),
            lambda: lab.policies.pack,
            lambda: lab.context("tabs"),
        ):
            with pytest.raises(MissingExtension, match="sizes 1 is not registered"):
                asks()
        history = lab.policies.history("recall-score")
        assert history["reason"].to_list() == ["", "longest first"]
        with pytest.raises(MissingExtension):
            lab.remember("kept")
        lab.policies.use("memlab")
        assert lab.recall("tabs")[0].text == "tabs"
    memlab.extend(Extension("sizes", "1", features=(feature(),)))
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.policies.history("recall-score")["version"].to_list() == [1, 2, 3]
        lab.policies.rollback("recall-score", to=2)
        assert lab.recall("tabs")[0].text == "four spaces for every level"


@pytest.mark.long
def test_another_version_of_an_extension_is_said(tmp_path):
    _needing(tmp_path / "a.memlab")
    memlab.extend(Extension("sizes", "2", features=(feature(),)))
    with pytest.warns(ExtensionWarning, match="sizes 1 was used, and 2 is registered"):
        lab = memlab.open(tmp_path / "a.memlab")
    with lab:
        assert lab.recall("tabs")[0].text == "four spaces for every level"


@pytest.mark.long
def test_a_challenger_that_needs_a_missing_extension_is_left_out(tmp_path):
    memlab.extend(Extension("sizes", "1", features=(feature(),)))
    with a_lab(tmp_path / "a.memlab") as lab:
        lab.challenge(OTHER)
    forget_extension("sizes")
    with pytest.warns(ExtensionWarning, match="other needs an extension"):
        lab = memlab.open(tmp_path / "a.memlab")
    with lab:
        assert lab.policies.challenges == ()
        assert lab.recall("tabs")


@pytest.mark.long
def test_a_log_that_used_a_missing_extension_is_refused_by_name(tmp_path):
    _needing(tmp_path / "a.memlab")
    with memlab.open(tmp_path / "a.memlab") as lab:
        lab.feedback(lab.recall("spaces")[0], "success")
        slates = lab.slates().collect()
        slates = memlab.Slates.from_frames(
            slates.decisions, slates.candidates, slates.exposures, slates.feedback
        )
    forget_extension("sizes")
    result = memlab.evaluate(slates, ["(fn [size] size)"], missing="zero")
    assert "a feature of the extension sizes 1, which is not registered" in str(result)


# -- stages ------------------------------------------------------------------------------------------------------


def stage_of(change):
    """Return a stage ``select`` that changes the ranking of the built-in one."""

    def run(recall):
        own_stage("select").run(recall)
        ranking = recall.selected.ranking
        recall.selected = replace(
            recall.selected, ranking=replace(ranking, order=change(ranking.order))
        )

    return Stage("select", "Another order.", ("scores", "known"), ("selected",), run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda order: order[[0, 0]], "does not contain each candidate of the pool exactly once"),
        (lambda order: order[:0], "does not contain each candidate of the pool exactly once"),
        (lambda order: order + 1, "does not contain each candidate of the pool exactly once"),
        (lambda order: None, "failed with"),
        (lambda order: 1 / 0, "failed with ZeroDivisionError"),
    ],
)
def test_a_selection_that_shows_a_memory_twice_or_none_is_refused_by_name(change, message):
    memlab.extend(Extension("orders", "1", stages=(stage_of(change),)))
    with a_lab() as lab:
        with pytest.raises(
            ExtensionError, match=f"stage select of the extension orders 1.*{message}"
        ):
            lab.recall("tabs")
        forget_extension("orders")
        assert len(lab.recall("tabs")) == 2


def test_a_selection_in_another_order_is_shown_in_that_order():
    memlab.extend(Extension("orders", "1", stages=(stage_of(lambda order: order[::-1]),)))
    with a_lab() as lab:
        turned = [hit.id for hit in lab.recall("tabs", log=False)]
        forget_extension("orders")
        assert [hit.id for hit in lab.recall("tabs", log=False)] == turned[::-1]


@pytest.mark.parametrize(
    "source", ["(fn [score] null)", "(fn [score] (/ 0 0))", "(fn [score] (log -1))"]
)
def test_a_policy_of_selection_that_takes_nothing_shows_nothing(source):
    with a_lab() as lab:
        lab.policies.install("select", source)
        assert len(lab.recall("tabs")) == 0
        assert lab.context("tabs").text is not None


# -- lab.features --------------------------------------------------------------------------------------------------


def test_an_expression_over_the_columns_of_memories_is_a_feature():
    with a_lab() as lab:
        added = lab.features.add("from-emi", pl.col("speaker") == "Emi", doc="Emi said it")
        assert (added.type, added.stage) == ("bool", "memory")
        lab.policies.install("recall-score", "(fn [from-emi] (if from-emi 1 0))")
        hits = lab.recall("spaces")
        assert [hit.text for hit in hits] == ["tabs", "four spaces for every level"]
        assert "from-emi" in str(hits[0].explain())
        assert lab.features.added == ("from-emi",)


def test_two_expressions_under_one_name_have_two_fingerprints():
    with a_lab() as lab:
        first = lab.features.add("mine", pl.col("importance") * 2).fingerprint({})
        second = lab.features.add("mine", pl.col("importance") * 3).fingerprint({})
    assert first != second


def test_a_function_of_query_and_texts_is_asked_once_a_recall():
    asked = []

    def score_pairs(query, texts):
        asked.append((query, list(texts)))
        return np.array([float(len(text)) for text in texts])

    with a_lab() as lab:
        lab.features.add("cross", score_pairs, version="1")
        lab.policies.install("recall-score", "(fn [cross] cross)")
        assert lab.recall("which?")[0].text == "four spaces for every level"
    assert asked == [("which?", ["tabs", "four spaces for every level"])]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (pl.col("importance").mean(), InputError, "reads other rows"),
        (pl.col("importance").rank(), InputError, "reads other rows"),
        (pl.col("importance").mean().over("project"), InputError, "reads other rows"),
        (pl.col("colour") == 1, UnknownName, "colour"),
        (pl.col("tags"), InputError, "type List"),
        (
            pl.col("importance").map_elements(abs, return_dtype=pl.Float64),
            InputError,
            "pass this function",
        ),
        ("importance * 2", InputError, "a Polars expression or a function"),
        (len, InputError, "version"),
    ],
)
def test_an_invalid_feature_is_refused(arguments, error, message):
    with a_lab() as lab, pytest.raises(error, match=message):
        lab.features.add("mine", arguments)
    assert "mine" not in FEATURES


def test_a_shipped_feature_cannot_be_replaced_and_what_was_not_added_not_removed():
    with a_lab() as lab:
        with pytest.raises(InputError, match="similarity is declared by memlab"):
            lab.features.add("similarity", pl.col("importance"))
        with pytest.raises(UnknownName):
            lab.features.remove("similarity")
        lab.features.add("mine", pl.col("importance"))
        lab.features.remove("mine")
        with pytest.raises(PolicyNameError, match="mine"):
            lab.policies.install("recall-score", "(fn [mine] mine)")


# -- readers, embedders, commands, entry points ------------------------------------------------------------------------


def captions(path):
    speaker = None
    for line in path.read_text().splitlines():
        if line.startswith("<v "):
            speaker, _, text = line[3:].partition(">")
            yield {"speaker": speaker, "text": text}


VTT = Reader("vtt", "captions", suffixes=(".vtt",), read=captions)


def test_a_reader_of_files_goes_through_everything_that_load_does(tmp_path):
    memlab.extend(Extension("captions", "1", readers=(VTT,)))
    (tmp_path / "talk.vtt").write_text(
        "WEBVTT\n\n<v Ada>I live in Rome\n<v Bob>My token is ghp_16C7e42F292c6912E7710c838347Ae178B4a\n"
    )
    with memlab.open() as lab:
        lab.load(tmp_path / "talk.vtt", progress=False)
        memories = lab.memories
        assert memories["speaker"].to_list() == ["Ada", "Bob"]
        assert "ghp_" not in memories["text"][1]
        lab.load(tmp_path, progress=False)
        assert len(lab.memories) == 2


@pytest.mark.parametrize(
    ("read", "error"),
    [(lambda path: 1 / 0, ExtensionError), (lambda path: ["text"], memlab.errors.DatasetError)],
)
def test_a_reader_that_fails_adds_nothing(tmp_path, read, error):
    memlab.extend(
        Extension(
            "captions", "1", readers=(Reader("vtt", "captions", suffixes=(".vtt",), read=read),)
        )
    )
    (tmp_path / "talk.vtt").write_text("WEBVTT")
    with memlab.open() as lab:
        with pytest.raises(error, match="reader vtt of the extension captions 1"):
            lab.load(tmp_path / "talk.vtt", progress=False)
        assert not len(lab.memories)


def test_an_embedder_is_opened_by_its_name(tmp_path):
    def embed(texts):
        return np.array([[len(text), 1.0] for text in texts])

    memlab.extend(
        Extension(
            "lengths", "1", embedders=(EmbedderSource("lengths", "by length", lambda: embed),)
        )
    )
    with memlab.open(tmp_path / "a.memlab", embedder="lengths") as lab:
        lab.remember("tabs")
    with pytest.raises(memlab.errors.EmbedderMismatch, match="vectors of lengths"):
        memlab.open(tmp_path / "a.memlab")


def test_a_command_of_an_extension_is_listed_in_the_help():
    import click
    from click.testing import CliRunner

    from memlab.ui.cli import main

    @click.command("shout", help="Say it loudly.")
    @click.argument("word")
    def shout(word):
        click.echo(word.upper())

    memlab.extend(Extension("shouts", "1", commands=(shout,)))
    run = CliRunner()
    assert "Say it loudly." in run.invoke(main, ["--help"]).output
    assert run.invoke(main, ["shout", "ok"]).output == "OK\n"
    with pytest.raises(InputError, match="recall"):
        memlab.extend(Extension("worse", "1", commands=(click.command("recall")(lambda: None),)))


def write_package(folder, name, module, entry="extension"):
    """Write a module and what an installed distribution of that name says of it."""
    (folder / f"{name}.py").write_text(textwrap.dedent(module))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[memlab.extensions]\n{name} = {name}:{entry}\n")


SIZES = """
    from memlab import Extension, Feature
    def size(pool):
        return [len(text) for text in pool.texts]
    extension = Extension("sizes", "1.0", features=(Feature("size", "num", "memory", "length", compute=size),))
"""


@pytest.mark.long
def test_the_extensions_of_installed_packages_are_found(tmp_path, run_python):
    write_package(tmp_path, "sizes", SIZES)
    said = run_python(
        "import memlab; print('size' in memlab.FEATURES, memlab.extensions())", path=tmp_path
    )
    assert said == "True {'sizes': <Extension sizes 1.0: 1 features>}"


@pytest.mark.long
def test_installed_extensions_that_fail_are_left_out_with_a_warning_each(tmp_path, run_python):
    write_package(tmp_path, "sizes", SIZES)
    write_package(tmp_path, "zzz_same_name", SIZES)
    write_package(tmp_path, "raises", "raise RuntimeError('no licence')")
    write_package(tmp_path, "imports", "import a_module_that_is_not_there")
    write_package(tmp_path, "exits", "raise SystemExit(3)")
    write_package(tmp_path, "lacks", "", entry="nothing")
    write_package(tmp_path, "three", "extension = 3")
    code = """
        import warnings, memlab
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lab = memlab.open()
            lab.remember("tabs")
            print(len(lab.recall("tabs")), *memlab.extensions())
        print(*sorted(str(one.message) for one in caught if one.category.__name__ == "ExtensionWarning"), sep="\\n")
    """
    first, *said = run_python(textwrap.dedent(code), path=tmp_path).splitlines()
    assert first == "1 sizes"
    assert [line.partition(" was not loaded. ")[2][:40] for line in said] == [
        "SystemExit: 3",
        "ModuleNotFoundError: No module named 'a_",
        "AttributeError: module 'lacks' has no at",
        "RuntimeError: no licence",
        "InputError: An extension must be a memla",
        "InputError: The extension sizes 1.0 is r",
    ]


@pytest.fixture
def run_python():
    import os
    import subprocess

    def run(code, *, path):
        root = Path(memlab.__file__).parent.parent
        known = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (path, root)))}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=known, check=True
        )
        return done.stdout.strip()

    return run


# -- events, projections and accessors ---------------------------------------------------------------------------------

REMARK = "nobody may read this remark"


class Pins(Projection):
    """Notes on memories."""

    name = "notes-pins"
    kinds = ("notes/pin",)
    events = (
        EventType(
            "notes/pin",
            "A user wrote a note on a memory.",
            {"memory": Field("memory"), "note": Field("text", of="memory")},
        ),
    )
    dumped = Field(
        "list",
        items=(Field("mapping", {"memory": Field("memory"), "note": Field("text")}),),
        drops=True,
    )

    def __init__(self):
        self.notes = {}

    def fold(self, event):
        self.notes[event.body["memory"]] = event.body["note"]

    def dump(self):
        return [{"memory": id, "note": note} for id, note in self.notes.items()]

    def load(self, dumped):
        self.notes = {row["memory"]: row["note"] for row in dumped}


class Notes:
    def __init__(self, seam):
        self._seam = seam

    def pin(self, memory, note):
        return self._seam.write("notes/pin", {"memory": memory.id, "note": note})

    @property
    def all(self):
        return dict(self._seam.projection(Pins).notes)

    def urgent(self):
        return self._seam.ask("urgent").tolist()


URGENT = Slot(
    "urgent",
    "Whether it is urgent.",
    returns="bool",
    stages=("memory",),
    source="(fn [importance] (> importance 0.7))",
)
NOTES = Extension(
    "notes",
    "1.0",
    slots=(URGENT,),
    projections=(Pins,),
    accessors=(Accessor("notes", "Notes.", Notes),),
)


@pytest.mark.long
def test_events_of_an_extension_are_folded_viewed_and_purged(tmp_path):
    memlab.extend(NOTES)
    with a_lab(tmp_path / "a.memlab") as lab:
        secret = lab.remember("only Ada may know", creator="ada", visibility="private")
        lab.notes.pin(secret, REMARK)
        lab.notes.pin(lab.memories["id"][0] and lab.remember("plain"), "fine")
        assert lab.notes.all == {3: REMARK, 4: "fine"}
        events = lab.notes._seam.events
        assert [event.kind for event in events()] == lab.log["kind"].to_list()
        assert [event.kind for event in events("notes/pin")] == ["notes/pin"] * 2
        assert "notes" in dir(lab)
        assert lab.at(viewer="bob").notes.all == {4: "fine"}
        lab.io.export(tmp_path / "whole.jsonl")
        lab.io.store.snapshot()
        lab.purge(secret)
        assert lab.notes.all == {3: "", 4: "fine"}
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.notes.all == {3: "", 4: "fine"}
    assert not [
        path
        for path in (tmp_path / "a.memlab").rglob("*")
        if path.is_file() and REMARK.encode() in path.read_bytes()
    ]


@pytest.mark.long
def test_a_lab_with_events_of_a_missing_extension_opens_and_is_not_purged(tmp_path):
    memlab.extend(NOTES)
    with a_lab(tmp_path / "a.memlab") as lab:
        lab.notes.pin(lab.remember("plain"), "fine")
        before = lab.memories["text"]
        lab.io.store.snapshot()
    forget_extension("notes")
    for _ in range(2):
        with memlab.open(tmp_path / "a.memlab") as lab:
            assert lab.memories["text"].equals(before)
            assert lab.recall("tabs")
            with pytest.raises(AttributeError, match="notes"):
                _ = lab.notes
            with pytest.raises(MissingExtension, match="events of the extension notes"):
                lab.purge(1)
            lab.io.store.snapshot()
    memlab.extend(NOTES)
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.notes.all == {3: "fine"}
        assert lab.purge(1).ids == (1,)


def test_a_lab_that_was_open_before_its_extension_says_so():
    with a_lab() as lab:
        memlab.extend(NOTES)
        with pytest.raises(MissingExtension, match=r"opened before the extension notes 1\.0"):
            _ = lab.notes.all


def test_an_accessor_asks_its_slot_of_all_memories():
    memlab.extend(NOTES)
    with a_lab() as lab:
        lab.remember("the house burns", importance=0.9)
        assert lab.notes.urgent() == [False, False, True]
        lab.policies.install("urgent", "(fn [importance] (< importance 0.7))")
        assert lab.notes.urgent() == [True, True, False]


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        ("notes/other", {}, InputError),
        ("remember", {"count": 0}, InputError),
        ("notes/pin", {"memory": 1, "colour": "red"}, InputError),
        (
            "notes/pin",
            {"memory": 1, "note": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"},
            memlab.errors.PrivacyError,
        ),
    ],
)
def test_a_write_that_an_extension_may_not_make_is_refused(kind, body, error):
    memlab.extend(NOTES)
    with a_lab() as lab:
        head = lab.io.store.journal.head
        with pytest.raises(error):
            lab.notes._seam.write(kind, body)
        assert lab.io.store.journal.head == head


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"events": (EventType("pin", "A note."),)},
            "begin with the name of its extension: worse/pin",
        ),
        (
            {"events": (EventType("worse/add", "Memories.", adds=True),)},
            "only memlab's own events may",
        ),
        (
            {
                "events": (
                    EventType(
                        "worse/pin", "A note.", {"memory": Field("memory"), "note": Field("text")}
                    ),
                )
            },
            "does not say which memory it describes",
        ),
        ({"accessors": (Accessor("recall", "Another.", Notes),)}, "Lab has an attribute recall"),
        ({"accessors": (Accessor("not a name", "Another.", Notes),)}, "not a valid attribute name"),
        ({"projections": (Notes,)}, "not a subclass of memlab.kernel.state.Projection"),
    ],
)
def test_events_and_accessors_are_checked_when_they_are_declared(declared, message):
    with pytest.raises(InputError, match=message):
        memlab.extend(Extension("worse", "1", **declared))
    assert "worse" not in memlab.extensions()


def test_two_extensions_cannot_have_an_event_a_projection_or_an_accessor_of_one_name():
    memlab.extend(NOTES)

    class Others(Projection):
        """Another table under the name of one that is there."""

        name, kinds, fold, dump, load = "notes-pins", (), None, None, None

    for declared, said in (
        (
            {"events": (EventType("notes/pin", "Another note."),)},
            "begin with the name of its extension",
        ),
        ({"projections": (Others,)}, r"notes-pins is declared by the extension notes 1\.0"),
        (
            {"accessors": (Accessor("notes", "Others.", Notes),)},
            r"notes is declared by the extension notes 1\.0",
        ),
        (
            {"events": (EventType("others/add", "One."), EventType("others/add", "Two."))},
            "declares others/add twice",
        ),
    ):
        with pytest.raises(InputError, match=said):
            memlab.extend(Extension("others", "1", **declared))
    with a_lab() as lab:
        lab.notes.pin(lab.remember("plain"), "fine")
        assert lab.notes.all == {3: "fine"}


class Broken(Pins):
    """Notes that cannot be read."""

    def fold(self, event):
        raise ZeroDivisionError


def test_a_projection_that_raises_writes_nothing():
    memlab.extend(Extension("notes", "1.0", projections=(Broken,), accessors=NOTES.accessors))
    with a_lab() as lab:
        head = lab.io.store.journal.head
        with pytest.raises(
            ExtensionError, match=r"projection notes-pins of the extension notes 1\.0.*ZeroDiv"
        ):
            lab.notes.pin(lab.memories["id"][0] and lab.remember("plain"), "fine")
        assert lab.io.store.journal.head == head + 1
        assert lab.recall("tabs")


@pytest.mark.long
def test_a_lab_whose_projection_raises_opens_and_says_so(tmp_path):
    memlab.extend(NOTES)
    with a_lab(tmp_path / "a.memlab") as lab:
        lab.notes.pin(lab.remember("plain"), "fine")
    memlab.extend(Extension("notes", "1.1", projections=(Broken,), accessors=NOTES.accessors))
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.recall("tabs")
        lab.remember("more")
        with pytest.raises(ExtensionError, match="projection notes-pins"):
            _ = lab.notes.all
        lab.io.store.snapshot()
    memlab.extend(NOTES)
    with memlab.open(tmp_path / "a.memlab") as lab:
        assert lab.notes.all == {3: "fine"}


class Opening(NamedTuple):
    subject: str
    predicate: str
    value: str
    entity: bool = False


def openings_in(text, role):
    """Read openings in a notation of chess: "Ada: 1. e4"."""
    player, _, move = text.partition(": 1. ")
    return [Opening(player, "opens-with", move)] if move and role == "user" else []


def test_a_hook_reads_the_fact_that_a_corrected_text_states():
    def edited():
        with memlab.open() as lab:
            receipt = lab.remember("Ada: 1. e4", subject="Ada", predicate="opens-with", value="e4")
            return lab.edit(receipt, text="Ada: 1. d4")

    assert edited().value is None
    memlab.extend(Extension("chess", "1", hooks=[Hook("openings", "read-facts", openings_in)]))
    result = edited()
    assert (result.value, result.rebuilt) == ("d4", ("value",))
    forget_extension("chess")
    assert openings_in not in list_hooks("read-facts")


class Echoes(Dependents):
    """Memories that repeat another one, as "echo: ..."."""

    label = "echo"

    def find(self, state, row, new, others):
        text = f"echo: {state.texts.value_at(row)}"
        return [
            index
            for index in range(len(state))
            if state.texts.value_at(index) == text and index + 1 not in others
        ]

    def revise(self, editor, row, text, rows, outcome):
        for item in rows:
            editor.write(
                "forget", {"set": [{"ids": [item + 1], "columns": {"status": "forgotten"}}]}
            )
            outcome.dropped.append(self.label)


def test_a_correction_reaches_what_an_extension_made_of_the_words():
    memlab.extend(Extension("echoes", "1", hooks=[Hook("echoes", "dependents", Echoes)]))
    with memlab.open() as lab:
        told, echo, other = lab.remember(["tabs", "echo: tabs", "echo: spaces"], linking="off")
        assert lab.edit(told, text="four spaces").dropped == ("echo",)
        assert [lab[item].status for item in (echo.id, other.id)] == ["forgotten", "active"]


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (Hook("late", "never", len), "names the unknown point 'never'"),
        (Hook("marks", "feedback", len), "declare your own event"),
        (Hook("broken", "dependents", 3), "is not a function"),
        (Hook("extraction-facts", "read-facts", len), "is declared by memlab"),
    ],
)
def test_a_hook_is_refused(hook, why):
    with pytest.raises(InputError, match=why):
        memlab.extend(Extension("chess", "1", hooks=[hook]))


def test_a_hook_may_be_named_and_is_imported_when_it_is_called():
    memlab.extend(
        Extension(
            "chess", "1", hooks=[Hook("late", "facts-stored", "chess_that_is_not_there:ends")]
        )
    )
    with memlab.open() as lab:
        lab.remember("tabs")
    with pytest.raises(ModuleNotFoundError):
        list_hooks("facts-stored")


class Gardens:
    """A map of a project of two gardens."""

    def __init__(self):
        self.modules = {"orchard": {}, "pond": {}}

    def find(self, task, *, limit):
        known = {
            "description": "apples and pears",
            "files": ["trees.csv"],
            "tests": [],
            "depends_on": [],
        }
        return [NamedPart("orchard", known)][:limit] if "apple" in task else []

    def rows(self, state, project, names):
        return (
            np.flatnonzero(state.names["project"].is_in([project]))[:1]
            if names
            else np.empty(0, dtype=np.int64)
        )


class NamedPart(NamedTuple):
    module: str
    known: dict


def test_a_context_says_what_an_extension_knows_of_a_project():
    def garden(state, project):
        return Gardens() if project == "garden" else None

    memlab.extend(Extension("gardens", "1", hooks=[Hook("gardens", "project-map", garden)]))
    with memlab.open() as lab:
        lab.remember("Prune in March", project="garden")
        context = lab.context("when are the apple trees pruned?", project="garden")
        assert context.modules == ("orchard",)
        assert "Modules of garden: orchard, pond" in context.text
        assert "orchard: apples and pears; files trees.csv" in context.text
        assert context.frame["reason"].to_list() == ["file"]
        assert (
            "Modules" not in lab.context("when are the apple trees pruned?", project="kitchen").text
        )


def test_the_events_of_a_pass_of_upkeep_reach_the_hooks():
    passes = []

    def tidied(store, now):
        passes.append(now)
        return [7]

    memlab.extend(Extension("tidy", "1", hooks=[Hook("tidied", "upkeep", tidied)]))
    with a_lab() as lab:
        assert 7 in lab.upkeep.maintain().events
    assert len(passes) == 1


def test_summaries_of_quarantined_memories_are_withdrawn_with_them():
    class Digest(NamedTuple):
        members: list
        was: dict

    memlab.extend(
        Extension(
            "digests",
            "1",
            hooks=[Hook("digests", "stand-ins", lambda state: {3: Digest([1], {"active": [1]})})],
        )
    )
    with memlab.open() as lab:
        lab.remember([{"text": "tabs", "session": "odd"}, "four spaces", "in short: tabs"])
        lab.forget(session="odd", how="quarantine")
        assert [lab[id].status for id in (1, 2, 3)] == ["quarantined", "active", "quarantined"]
