"""Every batch gives the same bits in one process, in threads, in processes and on a Dask cluster."""

import json
import os
import shutil
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context

import polars as pl
import pytest

import memlab
from memlab.errors import InputError, WorkerLost
from memlab.io.ingest import Conversation, LabelledConversation, Question, Turn
from memlab.science.batch import run_tasks
from memlab.science.simulation import World

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
TEXTS = {
    "north": [
        "The boat is red",
        "The harbour closes at six",
        "The boat was painted blue",
        "Ida sold the nets",
    ],
    "south": [
        "The bakery opens at five",
        "Rye bread is gone by nine",
        "The oven was repaired",
        "Jon has the keys",
    ],
}
ASKED = {
    "north": [("which colour has the boat?", ("n1", "n3")), ("who sold the nets?", ("n4",))],
    "south": [("when does the bakery open?", ("s1",)), ("who has the keys?", ("s4",))],
}
TALKS = [
    LabelledConversation(
        Conversation(
            name,
            tuple(
                Turn(
                    f"{name[0]}{at}",
                    "user",
                    text,
                    f"s{at % 2}",
                    START + timedelta(days=at),
                    role="user",
                )
                for at, text in enumerate(texts, 1)
            ),
        ),
        tuple(Question(text, "fact", evidence) for text, evidence in ASKED[name]),
    )
    for name, texts in TEXTS.items()
]
PACKS = ["memlab", "companion", "cascade"]
WORLD = World("tiny", days=3, projects=2, messages_per_day=6, questions_per_day=3)
LOG = partial(
    memlab.Slates.from_wide,
    decision="query_id",
    item="memory_id",
    shown="rank",
    reward="clicked",
    propensity="p",
    limit=3,
    scores=["old_score", "new_score"],
)
POLICY = "(fn [old_score new_score] (+ new_score (* (param :w 0.5 :low 0 :high 1) old_score)))"


def describe_bench(result):
    """Return the figures of a benchmark without its times."""
    systems = [
        {
            name: value
            for name, value in system.to_dict().items()
            if name not in ("latency_ms", "ingest_per_s")
        }
        | {"rankings": system.rankings}
        for system in result.systems
    ]
    return json.dumps(systems)


def describe_tuning(tuning):
    return tuning.params, tuning.held_out, tuning.gain, tuning.trials.rows(), tuning.by_fold.rows()


def read_log():
    return LOG(pl.read_parquet(memlab.examples.LOG))


def bench_talks(folder, **options):
    return describe_bench(memlab.bench_conversations(TALKS, packs=PACKS, **options))


def bench_own(folder, **options):
    path = folder / "own.memlab"
    if not path.exists():
        with memlab.open(path) as lab:
            lab.remember([text for texts in TEXTS.values() for text in texts])
    questions = pl.DataFrame({"question": ["who has the keys?"], "wanted": ["Jon has the keys"]})
    return describe_bench(memlab.bench_lab(path, questions, packs=PACKS, **options))


def bench_lives(folder, **options):
    result = memlab.bench_dynamics(TALKS, packs=PACKS[:2], **options)
    return json.dumps(result.to_dict(), default=str)


def try_packs(folder, **options):
    return memlab.trial(PACKS[:2], WORLD, seeds=2, **options).to_dict()


def tune_order(folder, **options):
    return describe_tuning(
        memlab.tune(
            read_log(), POLICY, missing="zero", metric="order", budget=20, folds=2, **options
        )
    )


def tune_value(folder, **options):
    return describe_tuning(
        memlab.tune(
            read_log(), POLICY, missing="zero", metric="value", budget=20, folds=2, **options
        )
    )


def open_notes():
    """Open a lab in memory with notes, recalls, feedback and questions."""
    lab = memlab.open(clock=memlab.ManualClock("2026-03-01T12:00:00"))
    lab.remember([text for texts in TEXTS.values() for text in texts])
    lab.feedback(lab.recall("who has the keys?")[0], "success")
    for texts in ASKED.values():
        for query, _ in texts:
            lab.questions.add(query, wants=[1, 3])
    return lab


def score_packs(folder, **options):
    with open_notes() as lab:
        policies = {"companion": "companion", "new": "(fn [age-days] age-days)"}
        policies["long"] = pl.col("text").str.len_chars()
        return (
            lab.score(policies, **options).to_dict(),
            len(lab.memories),
            lab.io.store.journal.head,
        )


def compare_labs(folder, **options):
    with open_notes() as lab, memlab.replay(lab, "companion").lab as other:
        return memlab.compare(lab, other, points=5, **options).frame.rows()


def replay_packs(folder, **options):
    """Replay a lab in memory under two packs, into a folder if there is an executor."""
    with memlab.open(clock=memlab.ManualClock("2026-03-01T12:00:00")) as lab:
        lab.remember([text for texts in TEXTS.values() for text in texts])
        for _ in range(4):
            lab.io.store.clock.advance(days=5)
            lab.feedback(lab.recall("who has the keys?", explore=True)[0], "success")
        path = folder / "replays" if options else None
        replays = memlab.replay(lab, PACKS[1:], path=path, **options)
        frames = [
            (again.lab.memories.rows(), again.lab.log.rows(), again.ids.rows()) for again in replays
        ]
    shutil.rmtree(folder / "replays", ignore_errors=True)
    return json.dumps(frames, default=str)


def evaluate_folder(folder, **options):
    """Evaluate policies on a folder of Parquet files; the log in one file without an executor."""
    frame = pl.read_parquet(memlab.examples.LOG)
    path = folder / f"log{len(options)}"
    if not path.exists():
        path.mkdir()
        for code in range(5 if options else 1):
            part = frame.filter(pl.col("query_id") % 5 == code) if options else frame
            part.write_parquet(path / f"{code}.parquet")
    columns = LOG.keywords.copy()
    scores = columns.pop("scores")
    result = memlab.evaluate(path, scores, columns=columns, missing="zero", **options)
    return json.dumps(result.frame.to_dicts(), default=str)


CALLS = [
    bench_talks,
    bench_own,
    bench_lives,
    try_packs,
    tune_order,
    tune_value,
    replay_packs,
    score_packs,
    compare_labs,
    evaluate_folder,
]


def open_dask():
    """Open a cluster of two worker processes on this machine."""
    distributed = pytest.importorskip("dask.distributed")
    return distributed.Client(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )


@contextmanager
def one_number(number):
    yield number


EXECUTORS = {
    "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    "number": lambda: one_number(2),
    "dask": open_dask,
}


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_threads_give_the_same_bits(call, tmp_path):
    with ThreadPoolExecutor(2) as threads:
        assert call(tmp_path, executor=threads) == call(tmp_path)


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # Dask warns of its own matters.
@pytest.mark.parametrize("kind", EXECUTORS)
def test_other_processes_give_the_same_bits(kind, tmp_path):
    with EXECUTORS[kind]() as executor:
        # A number starts new processes for each call.
        for call in CALLS[::3] if kind == "number" else CALLS:
            assert call(tmp_path, executor=executor) == call(tmp_path), call.__name__


@pytest.mark.long
def test_an_open_lab_is_scored_by_threads_and_refused_by_processes(lab):
    lab.remember([text for texts in TEXTS.values() for text in texts])
    questions = pl.DataFrame({"question": ["who has the keys?"], "wanted": ["Jon has the keys"]})
    bench = partial(memlab.bench_lab, lab, questions, packs=PACKS)
    with ThreadPoolExecutor(2) as threads:
        assert describe_bench(bench(executor=threads)) == describe_bench(bench())


def test_labs_of_the_past_and_encrypted_labs_are_not_copied_for_workers(lab):
    lab.remember("a note")
    lab.questions.add("a note?", wants=[1])
    past = lab.at(event=lab.io.store.journal.head)
    with pytest.raises(InputError, match=r"Omit executor="):
        memlab.compare(past, lab, names=("past", "now"), executor=2)
    with pytest.raises(InputError, match="number of processes"):
        lab.score(executor="many")


def end_once(folder, task, step):
    """End the worker at the first run of task 3."""
    marker = folder / "ended"
    if task == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return memlab.load_pack("memlab").hash, task


def end_always(task, step):
    os.kill(os.getpid(), signal.SIGKILL)


def end_once_before(marker, fn, args):
    """End the worker before the first of all calls."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return fn(*args)


class LosesAWorker:
    """An executor on a cluster, one worker of which is killed in the middle of a batch."""

    def __init__(self, client, folder):
        self.client, self.marker, self.count = client, folder / "killed", 0

    def submit(self, fn, /, *args):
        self.count += 1
        if self.count == 2:
            return self.client.submit(end_once_before, self.marker, fn, args, pure=False)
        return self.client.submit(fn, *args)


@pytest.mark.long
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "call", [evaluate_folder, try_packs, replay_packs], ids=lambda call: call.__name__
)
def test_a_dask_worker_killed_in_the_middle_changes_no_bit(call, tmp_path):
    with open_dask() as client:
        executor = LosesAWorker(client, tmp_path)
        assert call(tmp_path, executor=executor) == call(tmp_path)
        assert executor.marker.exists()


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_dask_gives_the_tasks_of_a_dead_worker_to_the_others(tmp_path):
    with open_dask() as client:
        expected = [(memlab.load_pack("memlab").hash, task) for task in range(8)]
        assert run_tasks(partial(end_once, tmp_path), range(8), client) == expected
        assert (tmp_path / "ended").exists()
        with pytest.raises(WorkerLost, match=r"Client lost a task of 1.*KilledWorker"):
            run_tasks(end_always, range(1), client)
        assert run_tasks(partial(end_once, tmp_path), range(8), client) == expected


@pytest.mark.long
def test_an_error_of_a_pack_in_a_worker_is_an_error_of_memlab():
    with pytest.raises(InputError, match="no messages or no questions"):
        memlab.trial(PACKS[:2], World("empty", days=1, questions_per_day=0), seeds=1, executor=1)
