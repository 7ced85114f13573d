"""One argument sends the work of a batch to threads, processes or a cluster, and changes no bit of its result."""

import copy
import os
import pickle
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

import memlab
from memlab import errors
from memlab.errors import InputError, MemlabError, PolicySyntaxError, WorkerLost
from memlab.kernel.policies import load_pack, pack_names
from memlab.science.batch import run_tasks

# -- tasks, which workers import from this file ------------------------------------------------------------------------


def square(task, step):
    step(1)
    return task * task


def fail_at_three(task, step):
    if task == 3:
        raise PolicySyntaxError("no form", source="(", line=1, column=1)
    if task == 4:
        raise ZeroDivisionError("four")
    return task


def end_once(folder, task, step):
    """End the worker at the first run of task 2."""
    (folder / f"{task}-{time.monotonic_ns()}").touch()
    if task == 2 and len(list(folder.glob("2-*"))) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return task * 10


def end_always(task, step):
    os.kill(os.getpid(), signal.SIGKILL)


def give_a_lock(task, step):
    import threading

    return threading.Lock()


def wait_for_ever(folder, task, step):
    """Wait in a folder of its own, which it removes at its end."""
    mine = folder / f"running-{task}"
    try:
        mine.mkdir()
        time.sleep(20)
    finally:
        mine.rmdir()


class Odd:
    """An executor that returns late, in the wrong order, and that runs every task twice."""

    def __init__(self):
        self.calls, self.futures = [], []

    def submit(self, fn, /, *args):
        future = Future()
        self.calls.append((future, fn, args))
        if len(self.calls) == 4:
            for waiting, call, values in reversed(self.calls):
                call(*values)
                waiting.set_result(call(*values))
        return future


# -- the mapping -------------------------------------------------------------------------------------------------------


def test_results_are_in_the_order_of_the_tasks_with_any_executor():
    expected = [0, 1, 4, 9]
    steps = []
    assert run_tasks(square, range(4), None, steps.append) == expected
    assert steps == [1] * 4
    with ThreadPoolExecutor(2) as threads:
        assert run_tasks(square, range(4), threads, steps.append, 7) == expected
    assert steps[4:] == [7] * 4
    assert run_tasks(square, range(4), Odd()) == expected


def test_the_first_failing_task_raises_its_own_error_and_the_rest_is_cancelled():
    class Waits(Odd):
        def submit(self, fn, /, *args):
            future = Future()
            self.futures.append(future)
            if len(self.futures) <= 4:
                future.set_result(fn(*args))
            return future

    waits = Waits()
    with pytest.raises(PolicySyntaxError, match="no form") as caught:
        run_tasks(fail_at_three, range(6), waits)
    assert caught.value.line == 1
    assert [future.cancelled() for future in waits.futures] == [False] * 4 + [True] * 2


def test_an_executor_that_refuses_tasks_is_told_in_one_sentence():
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(
        WorkerLost, match=r"lost a task of 3.*cannot schedule new futures after shutdown"
    ):
        run_tasks(square, range(3), threads)


def test_a_worker_with_another_version_is_refused(monkeypatch):
    class Old(Odd):
        def submit(self, fn, /, *args):
            future = Future()
            future.set_result(fn(*args)._replace(version="0.1.0"))
            return future

    with pytest.raises(InputError, match=r"memlab 0\.1\.0, and this process"):
        run_tasks(square, range(3), Old())


@pytest.mark.parametrize("executor", [0, -1, True, "two", 1.5, object()])
def test_other_values_are_refused_by_name(executor):
    with pytest.raises(InputError, match=r"executor=.*a number of processes, at least 1"):
        memlab.trial(["memlab", "companion"], memlab.simulation.World("w"), executor=executor)


def test_a_pool_that_forks_is_refused_because_polars_would_wait_for_ever():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool,
        pytest.raises(InputError, match="forks its processes"),
    ):
        memlab.trial(["memlab", "companion"], memlab.simulation.World("w"), executor=pool)


# -- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_errors_of_other_processes_arrive_as_they_are(method):
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        assert run_tasks(square, range(5), pool) == [0, 1, 4, 9, 16]
        with pytest.raises(PolicySyntaxError, match="no form") as caught:
            run_tasks(fail_at_three, range(5), pool)
        assert caught.value.source == "("
        with pytest.raises(ZeroDivisionError) as divided:
            run_tasks(fail_at_three, [0, 4], pool)
        assert "fail_at_three" in divided.value.__notes__[0]
        with pytest.raises(WorkerLost, match=r"cannot pickle '_thread\.lock'"):
            run_tasks(give_a_lock, range(2), pool)
        with pytest.raises(WorkerLost, match="no result was kept"):
            run_tasks(lambda task, step: task, range(2), pool)
        assert run_tasks(square, range(5), pool) == [0, 1, 4, 9, 16]


@pytest.mark.long
def test_a_process_that_dies_is_replaced_once_and_its_task_repeated(tmp_path):
    assert run_tasks(partial(end_once, tmp_path), range(6), 2) == [0, 10, 20, 30, 40, 50]
    assert len(list(tmp_path.glob("2-*"))) == 2
    with pytest.raises(WorkerLost, match="lost a task of 2"):
        run_tasks(end_always, range(2), 10**12)
    assert run_tasks(square, [], 3) == []


@pytest.mark.long
def test_a_users_pool_that_breaks_is_told_and_returns_nothing(tmp_path):
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        pytest.raises(WorkerLost, match="BrokenProcessPool"),
    ):
        run_tasks(partial(end_once, tmp_path), range(6), pool)


@pytest.mark.long
def test_an_interrupt_ends_the_processes_and_their_tasks_clean_up(tmp_path):
    import threading

    def interrupt():
        while not list(tmp_path.iterdir()):
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    # A shell starts processes in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            run_tasks(partial(wait_for_ever, tmp_path), range(4), 2)
    finally:
        signal.signal(signal.SIGINT, before)
        thread.join()
    assert not list(tmp_path.iterdir())


# -- what is sent ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pack_names())
def test_a_pack_keeps_its_policies_through_a_pickle(name):
    pack = load_pack(name)
    again = pickle.loads(pickle.dumps(pack))
    assert again == pack
    assert (again.hash, again.known_for) == (pack.hash, pack.known_for)
    assert all(again.policies[slot] == policy for slot, policy in pack.policies.items())
    assert [policy.root.digest for policy in again.policies.values()] == [
        policy.root.digest for policy in pack.policies.values()
    ]


def test_changed_parameters_and_fields_of_records_stay_through_a_pickle():
    pack = load_pack("companion").with_params({"eligible:near": 0.5})
    assert pickle.loads(pickle.dumps(pack)).policies["eligible"].params["near"].value == 0.5
    record = pack.policies["reinforce"]
    field = record.field(record.fields[0])
    assert pickle.loads(pickle.dumps(field)) == field
    assert copy.deepcopy(field).name == field.name


def test_every_error_of_memlab_can_be_sent():
    made = {
        "UnknownName": ("pack", "x", ["y"]),
        "NoSuchItem": ("item", 3),
        "MissingExtra": ("memlab.tune", "scipy", "science"),
    }
    for name in errors.__all__:
        kind = getattr(errors, name)
        if issubclass(kind, MemlabError):
            error = kind(*made.get(name, ("a fault",)))
            again = pickle.loads(pickle.dumps(error))
            assert (type(again), str(again)) == (kind, str(error))
            assert again.__dict__ == error.__dict__
