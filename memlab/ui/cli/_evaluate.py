"""Commands on logs and labelled questions: evaluate, challenge, guard, plan, bench."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import memlab
from memlab.errors import InputError
from memlab.kernel.base.disk import replacing, writing
from memlab.kernel.base.display import render_text
from memlab.ui.cli._base import (
    MODEL_KEY,
    LocalPath,
    Report,
    bench,
    command,
    get_fields,
    main,
    open_existing,
    policy,
    read,
    read_frame,
    terminal_width,
    write,
    write_if,
)

if TYPE_CHECKING:
    from memlab.io.ingest import LabelledConversation
    from memlab.science.bench import BenchResult, DynamicsResult, ForecastResult
    from memlab.science.evaluation import Evaluation

# Types and options of several commands.
_PATH = LocalPath()
# Options of every command that estimates rewards.
_JUDGED = {
    "horizon": "Time after a recall in which feedback counts, such as 7d or 12h.",
    "missing": "What missing feedback counts as; required if the result depends on it.",
}
_LEVEL = click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals, between 0 and 1.",
)
_RANGE = click.option(
    "--reward-range",
    type=float,
    nargs=2,
    metavar="LOW HIGH",
    help="Minimum and maximum reward that one item can have.",
)
_BOUNDS = "loss", "low", "high"
_REPORT = click.option(
    "--report", type=_PATH, help="Write the results to this file, as one HTML page."
)


@command(
    main,
    verb="memlab.science.evaluation:evaluate",
    options={
        **_JUDGED,
        "estimator": "Estimator of the values.",
        "baseline": "Policy that others are compared with. Default: the logging policy.",
        "position": "Weight rewards by how often users look at a rank.",
    },
)
@click.argument("log", type=_PATH)
@click.option(
    "--policies",
    "-p",
    multiple=True,
    help="A pack's name, a .hy file, or a column of scores; may be repeated.",
)
@_REPORT
@_LEVEL
@_RANGE
@click.option(
    "--details",
    is_flag=True,
    help="Print all reasons and remarks of the evaluation, and each query.",
)
@click.option(
    "--labels",
    type=_PATH,
    help="File of labels with the columns decision, memory_id and relevance.",
)
@click.option(
    "--decision",
    default="decision",
    show_default=True,
    help="Column with the recall's id, if LOG is a file.",
)
@click.option(
    "--item",
    default="memory_id",
    show_default=True,
    help="Column with the memory's id, if LOG is a file.",
)
@click.option(
    "--shown",
    default="rank",
    show_default=True,
    help="Column with the rank, if LOG is a file; 0 or empty means not shown.",
)
@click.option(
    "--reward",
    default="reward",
    show_default=True,
    help="Column with the reward, if LOG is a file.",
)
@click.option("--propensity", help="Column with the logging probability, if LOG is a file.")
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Number of results of each recall in a file; needed if the file has exploration items.",
)
@click.option("--at", help="Column with the time of the recall, if LOG is a file.")
@click.option("--feedback-at", help="Column with the time of the feedback, if LOG is a file.")
@click.option(
    "--cluster",
    help="Column that groups dependent recalls, such as user. For a lab, also: day or decision.",
)
def evaluate(
    log: Path,
    policies: tuple[str, ...],
    report: Path | None,
    details: bool,
    labels: Path | None,
    cluster: str | None,
    **options: Any,
) -> Report:
    """Estimate how each policy would have performed on LOG.

    LOG is a lab, a log of memlab.record, or a CSV or Parquet file of candidates. The exit status is 1 if no policy can be
    evaluated.

    Example: memlab evaluate my.memlab -p companion -p mine.hy --missing zero
    """
    columns = ("decision", "item", "shown", "reward", "propensity", "limit", "at", "feedback_at")
    file_columns = {name: options.pop(name) for name in columns}
    options["labels"] = None if labels is None else read_frame(labels)
    if log.is_dir():
        from memlab.io.recorder import is_record

        if is_record(log):
            _require_policies(policies)
            slates = memlab.read_record(log)
            result = memlab.evaluate(slates, list(policies), cluster=cluster, **options)
            return _report_evaluation(result, report, details)
        with open_existing(log, read_only=True) as lab:
            chosen = list(policies) or list(memlab.packs())
            return _report_evaluation(
                memlab.evaluate(lab.slates(), chosen, cluster=cluster, **options), report, details
            )
    frame = read_frame(log, dates=True)
    _require_policies(policies)
    if labels is not None and file_columns["reward"] not in frame.columns:
        file_columns["reward"] = None
    days = cluster in ("day", "decision") and cluster not in frame.columns
    scores = [name for name in policies if name in frame.columns]
    slates = memlab.Slates.from_wide(
        frame, cluster=None if days else cluster, scores=scores, **file_columns
    )
    result = memlab.evaluate(slates, list(policies), cluster=cluster if days else None, **options)
    return _report_evaluation(result, report, details)


def _require_policies(policies: tuple[str, ...]) -> None:
    """Raise UsageError if a log outside a lab comes without a policy to evaluate."""
    if not policies:
        raise click.UsageError(
            "Give --policies to evaluate: columns of scores, packs or .hy files."
        )


def _report_evaluation(result: Evaluation, report: Path | None, details: bool) -> Report:
    """Build the report of an evaluation; the exit status is 1 without any estimate."""
    width = terminal_width()
    parts = [result.text(width)]
    if details:
        facts = [] if result.observed is None else [result.observed.text(width)]
        parts += [render_text([result.details], width), *facts]
    value, text = _add_page(result, report, "\n\n".join(parts))
    return value, text, int(not result.frame["value"].count())


def _add_page(result: Any, report: Path | None, text: str) -> tuple[Any, str]:
    """Return the values and the text of a result, and write its HTML page if a path is given."""
    written = None if report is None else str(result.report(report))
    return result.to_dict() | {"report": written}, text + (f"\n\nOpen {written}" if written else "")


@command(
    policy,
    write,
    verb="memlab.kernel.verbs.policies.policies:LabPolicies.challenge",
    options={
        "reason": "Reason for the change, recorded in the history.",
        "design": "How the packs are compared; see above.",
        "extra": "Number of additional items, or auto.",
        "rate": "Share of recalls that take part.",
    },
)
@click.argument("pack")
@click.option(
    "--end", is_flag=True, help="End the comparison with PACK; the active pack stays active."
)
def challenge(lab: memlab.Lab, pack: str, end: bool, **options: Any) -> Report:
    """Compare PACK with the active pack of LAB, from the next recall on.

    PACK is a name or a .hy file. By default, --extra items that only PACK would show are added to the results. With
    --design lot, a random draw decides among the items on which the packs differ, and no recall
    shows more results. With --design draft, both packs fill these positions in turn. With --design
    ab, each recall shows the results of one pack. `memlab policy verdict` reports which is better.

    Example: memlab policy challenge my.memlab mine.hy
    """
    if end:
        lab.policies.end_challenge(pack, reason=options["reason"])
        return {"ended": pack}, f"{pack} is no longer a challenger"
    challenger = lab.challenge(pack, **options)
    report = get_fields(challenger, "name", "design", "extra", "rate", "reason")
    return report | {"hash": challenger.pack.hash}, repr(challenger).strip("<>")


@command(
    policy,
    lambda path, options: open_existing(path, read_only=options["plan"] or not options["pack"]),
    verb="memlab.subjects.lab:Lab.guard",
    options={
        "share": "Share of recalls that show the results of PACK.",
        "tolerance": "Loss of reward per recall that is accepted.",
        "shadow": "Show the results of the active pack only, and log those of PACK.",
        "missing": "What missing feedback counts as.",
        "wait": "Later judged recalls until the feedback of a recall is complete.",
        "plan": "Forecast the recalls until a rollback, and begin nothing.",
        "reason": "Reason for the change, recorded in the history.",
    },
)
@click.argument("pack", required=False)
@_LEVEL
@_RANGE
def guard(lab: memlab.Lab, **options: Any) -> Report:
    """Let PACK serve a share of the recalls of LAB, until feedback shows a loss.

    Without PACK, report on the latest guard. `memlab policy challenge LAB PACK --end` ends it.

    Example: memlab policy guard my.memlab mine.hy --share 0.1
    """
    result = lab.guard(**{name: value for name, value in options.items() if value is not None})
    names = "pack hash state share tolerance level since until served judged reason end_reason forecast basis"
    bounds = {name: getattr(result, name) if result.judged else None for name in _BOUNDS}
    return get_fields(result, *names.split()) | bounds, result


@command(
    policy,
    read,
    verb="memlab.science.evaluation:verdict",
    options={
        **_JUDGED,
        "cluster": "Group of dependent recalls: session, day or a column.",
    },
)
@click.argument("challenger", required=False)
@_LEVEL
@_RANGE
@_REPORT
def verdict(lab: memlab.Lab, challenger: str | None, report: Path | None, **options: Any) -> Report:
    """Report whether CHALLENGER is better than the active pack of LAB.

    Default: each challenger. The result is valid at every interim analysis.

    Example: memlab policy verdict my.memlab
    """
    result = lab.verdict(challenger, **options)
    return _add_page(result, report, repr(result))


@command(
    policy,
    write_if("yes"),
    verb="memlab.subjects.programs.operations:LabOperations.adapt_policy",
    options={
        **_JUDGED,
        "cluster": "Group of dependent recalls: day, session, decision or a column.",
        "estimator": "Estimator of the values.",
        "level": "Confidence level.",
        "seed": "Seed of the search for parameters.",
    },
)
@_RANGE
@click.option(
    "--yes",
    is_flag=True,
    help="Carry out the proposal, an earlier policy or other parameters. Default: only print it.",
)
def adapt(lab: memlab.Lab, yes: bool, **options: Any) -> Report:
    """Propose an earlier policy or other parameters, if the log shows an improvement.

    --yes carries out the proposal.

    Example: memlab policy adapt my.memlab --missing zero
    """
    result = lab.upkeep.operations.adapt_policy(**options, consent=yes)
    return result.to_dict(), result


@command(
    policy,
    read,
    verb="memlab.science.evaluation:plan",
    options={
        **_JUDGED,
        "baseline": "Policy that others are compared with. Default: the active pack.",
    },
)
@click.argument("packs", nargs=-1, required=True)
@_LEVEL
@_RANGE
def plan(lab: memlab.Lab, packs: tuple[str, ...], **options: Any) -> Report:
    """Estimate the recalls needed to distinguish PACKS from the active pack of LAB.

    There is an estimate for each design, from the log so far.

    Example: memlab policy plan my.memlab mine.hy --missing zero
    """
    result = memlab.plan(lab.slates(), list(packs), **options)
    return get_fields(result, "baseline", "recalls", "best", "notes", designs="frame"), result


@command(
    main,
    read,
    verb="memlab.science.evolution:evolve",
    options={
        **_JUDGED,
        "metric": "Metric, such as recall@10. Default: ndcg@10, or value with feedback.",
        "cluster": "Group of dependent recalls: day, session, decision or a column.",
        "seed": "Seed of the parts and of the search.",
        "folder": "Folder of the search. An interrupted search continues there.",
    },
)
@click.option(
    "--start",
    help="Policy or pack with which the search begins, such as similarity. Default: the active pack.",
)
@click.option(
    "--slots", multiple=True, help="Slot whose policy the search varies. Default: recall-score."
)
@click.option(
    "--budget",
    default="10 min",
    show_default=True,
    help='Number of candidate policies to try, or a time such as "10 min".',
)
@click.option(
    "--workers",
    "executor",
    type=click.IntRange(1),
    help="Number of processes that score candidate policies. Default: this one.",
)
@click.option("--out", type=_PATH, help="Write the winner's pack to this file.")
@_REPORT
@_LEVEL
def evolve(
    lab: memlab.Lab,
    slots: tuple[str, ...],
    budget: str,
    out: Path | None,
    report: Path | None,
    as_json: bool,
    **options: Any,
) -> Report:
    """Search for a better policy on the questions of LAB, or on its log if it has no questions.

    Nothing is installed. A winner is better on clusters that the search never read. --out writes it
    to a file, and memlab policy challenge compares it with the active pack. A winner that inherits
    from another pack than memlab is written as FILE.mempack, for memlab pack pull --lab.

    Example: memlab evolve my.memlab --budget "10 min" --out better.hy
    """
    if slots:
        options["slots"] = slots
    for path in (out, report):
        if path is not None and not path.parent.is_dir():
            # Found before the search, whose result would be lost.
            raise InputError(f"There is no folder {path.parent} for {path.name}. Create it first.")
    result = memlab.evolve(
        lab,
        budget=int(budget) if budget.isdecimal() and len(budget) < 19 else budget,
        progress=not as_json and sys.stderr.isatty(),
        **options,
    )
    text, written = result.text(terminal_width()), None
    if out is not None and isinstance(result.best, memlab.Pack):
        written = _write_winner(result.best, out)
        text += f"\n\n{written} is written"
    value, text = _add_page(result, report, text)
    return value | {"out": written and str(written)}, text


def _write_winner(pack: memlab.Pack, path: Path) -> Path:
    """Write a pack as a text, or as a published pack if it needs texts of other packs; return the path."""
    text = pack.sources[0]
    if path.suffix == ".mempack" or memlab.load_pack(text).hash != pack.hash:
        return memlab.publish_pack(pack, path.with_suffix(".mempack"))
    with writing(f"The pack {path}"), replacing(path) as file:
        file.write(text.encode())
    return path


# -- labelled questions ---------------------------------------------------------------------------------------------


@command(bench, read)
@click.option("--labels", type=_PATH, help="File of wanted memories: .csv, .jsonl or .parquet.")
@click.option(
    "--examples",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help="Number of lost memories to show per stage, such as not stored or ranked too low.",
)
@click.option("--cluster", help="Group of dependent recalls: session, day or decision.")
def failures(lab: memlab.Lab, labels: Path | None, **options: Any) -> Report:
    """Show where LAB lost wanted memories.

    A memory was never stored, was not in the candidate pool, was ranked too low, or was shown and
    not used. The file of --labels has a row for each wanted memory: decision or question, and
    memory_id or ref. Without it, memories with successful feedback are the wanted ones.

    Example: memlab bench failures my.memlab --labels wanted.csv
    """
    result = memlab.failures(lab, None if labels is None else read_frame(labels), **options)
    return result.to_dict(), result.text(terminal_width())


# An option of every benchmark of packs.
_PACKS = click.option(
    "--packs",
    multiple=True,
    help="A pack's name or .hy file; may be repeated. Default: all packs.",
)


def _add_bench_options(function: Callable[..., Report]) -> Callable[..., Report]:
    """Add the options that all benchmarks have to a command."""
    limit = click.option(
        "--limit",
        type=click.IntRange(20),
        default=20,
        show_default=True,
        help="Number of memories per recall.",
    )
    workers = click.option(
        "--workers",
        "executor",
        type=click.IntRange(1),
        help="Number of processes that measure packs. Default: this one.",
    )
    store = click.option(
        "--store", type=_PATH, help="Folder that keeps results, so that a pack is measured once."
    )
    embedder = click.option(
        "--embedder",
        callback=_import_embedder,
        help="Embedder of the measured labs: minilm, a folder of model2vec, or MODULE:NAME of a function or object.",
    )
    return _PACKS(limit(workers(store(embedder(_add_budget_options(function))))))


def _import_embedder(_context: object, _option: object, value: str | None) -> Any:
    """Import the object that MODULE:NAME names; return any other value unchanged."""
    if value is None or ":" not in value or Path(value).exists():
        return value
    module, _, name = value.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return attrgetter(name)(import_module(module))
    except (ImportError, AttributeError) as error:
        raise click.BadParameter(
            f"{value} cannot be imported: {error}. Name a module on the path and a function or object in it."
        ) from error
    finally:
        sys.path.pop(0)


def _read_budgets(context: click.Context, option: click.Parameter, text: str | None) -> list[int]:
    """Return the token budgets in the option --budgets, each at least 1, or [] without the option."""
    try:
        budgets = [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        budgets = [0]
    if any(budget < 1 for budget in budgets):
        raise click.BadParameter("give numbers of tokens, such as 500,1000,2000.")
    return budgets


def _add_budget_options(function: Callable[..., Report]) -> Callable[..., Report]:
    """Add the options for measurements within token budgets to a command."""
    for option in (
        click.option(
            "--model-tokens",
            type=click.IntRange(1),
            default=1_000_000,
            show_default=True,
            help="Maximum number of tokens of all requests to a model and its answers.",
        ),
        click.option(
            "--model-calls",
            type=click.IntRange(1),
            help="Maximum number of requests to each model.",
        ),
        click.option(
            "--run",
            type=_PATH,
            help="Folder that stores every prompt, reply and verdict; an interrupted run continues there.",
        ),
        _address("--judge", "Model that compares answers with the expected ones."),
        _address("--model", f"Model that answers; its key is in {MODEL_KEY}."),
        click.option(
            "--answers",
            is_flag=False,
            flag_value="model",
            type=click.Choice(["offline", "model"]),
            help="How to answer the questions: offline (copies words of the context) or model "
            "(asks the model of --model).",
        ),
        _REPORT,
        click.option(
            "--budgets",
            callback=_read_budgets,
            help="Measure how much evidence prompts of these token counts hold, such as 500,1000,2000.",
        ),
    ):
        function = option(function)
    return function


def _address(name: str, text: str) -> Callable[[Callable[..., Report]], Callable[..., Report]]:
    """Return the decorator that adds an option for the address and the name of a language model."""
    return click.option(name, type=(str, str), metavar="URL NAME", help=text)


# An option of every benchmark.
_SHA256 = click.option(
    "--sha256",
    default="",
    help="Expected SHA-256 of the data file or folder; other data are refused.",
)


@command(bench)
@click.argument("path", type=_PATH, required=False)
@click.option(
    "--evidence",
    type=(str, _PATH),
    multiple=True,
    metavar="NAME FILE",
    help="Additional labels: a NAME for the report, and a FILE of labels.",
)
@click.option(
    "--download",
    is_flag=True,
    help="Download the original file to PATH, unless it is there already, and check its hash.",
)
@_SHA256
@_add_bench_options
def locomo(
    path: Path | None,
    evidence: tuple[tuple[str, Path], ...],
    download: bool,
    sha256: str,
    as_json: bool,
    **options: Any,
) -> Report:
    """Rank the turns of conversations in the format of LoCoMo with each pack.

    --evidence corrected corrections.json scores the same rankings with these labels, next to the published ones.

    Example: memlab bench locomo locomo10.json --download
    """
    from memlab.io.ingest import check_digest, correct_evidence, download_locomo, read_locomo

    if path is None and not download:
        raise click.UsageError(
            "Give the PATH of a LoCoMo file, or --download to download the original."
        )
    target = path or Path("locomo10.json")
    if download:
        download_locomo(target)
    digest = check_digest(target, sha256)
    conversations = read_locomo(target)
    labels = {name: correct_evidence(conversations, file) for name, file in evidence}
    return _run_conversations(conversations, target, digest, as_json, labels=labels, **options)


@command(bench)
@click.argument("folder", type=_PATH)
@click.option(
    "--dynamics",
    is_flag=True,
    help="Simulate the chats with linking and upkeep, and measure outdated results.",
)
@_SHA256
@_add_bench_options
def beam(folder: Path, dynamics: bool, sha256: str, as_json: bool, **options: Any) -> Report:
    """Rank the messages of the BEAM chats in FOLDER with each pack; report by ability.

    Example: memlab bench beam beam/100K --packs companion
    """
    from memlab.io.ingest import check_digest, read_beam
    from memlab.science.bench import bench_dynamics

    if dynamics and (options["budgets"] or options["store"]):
        raise click.UsageError("Give --dynamics without --budgets and --store.")
    arguments = {"bench": bench_dynamics} if dynamics else {"unit": "message"}
    return _run_conversations(
        read_beam(folder), folder, check_digest(folder, sha256), as_json, **arguments, **options
    )


@command(bench)
@click.argument("file", type=_PATH)
@_SHA256
@_add_bench_options
def longmemeval(file: Path, sha256: str, as_json: bool, **options: Any) -> Report:
    """Rank the turns of LongMemEval with each pack, and report by question type.

    Example: memlab bench longmemeval longmemeval_s_cleaned.json
    """
    from memlab.io.ingest import check_digest, read_longmemeval

    digest = check_digest(file, sha256)
    return _run_conversations(read_longmemeval(file), file, digest, as_json, **options)


@command(bench)
@click.argument("folder", type=_PATH)
@_SHA256
@_add_bench_options
def lmeb(folder: Path, sha256: str, as_json: bool, **options: Any) -> Report:
    """Rank the candidates of the LMEB tasks below FOLDER with each pack; report by task.

    Example: memlab bench lmeb eval_data/Dialogue
    """
    from memlab.io.ingest import check_digest, read_lmeb

    digest = check_digest(folder, sha256)
    return _run_conversations(
        read_lmeb(folder), folder, digest, as_json, unit="document", **options
    )


@command(bench, name="lab")
@click.argument("lab", type=_PATH)
@click.argument("labels", type=_PATH)
@_add_bench_options
def bench_own(lab: Path, labels: Path, as_json: bool, **options: Any) -> Report:
    """Rank the memories of LAB for the queries in LABELS with each pack.

    LABELS is a .jsonl or .csv file. A row has a question and the wanted memories, by id, ref or text, such as
    {"question": "Where is the key?", "wanted": [17]}. LAB is only read.

    Example: memlab bench lab my.memlab wanted.jsonl
    """
    from memlab.io.ingest import read_questions
    from memlab.science.bench import bench_lab

    wanted = read_questions(labels)
    return _run_bench(partial(bench_lab, lab, wanted), as_json, (lab, wanted), {}, **options)


def _add_forecast_options(function: Callable[..., Report]) -> Callable[..., Report]:
    """Add the options for retention benchmarks to a command."""
    fit = click.option(
        "--fit",
        multiple=True,
        help="Pack that is also scored with fitted parameters; may be repeated.",
    )
    splits = click.option(
        "--splits",
        type=click.IntRange(1, 50),
        default=1,
        show_default=True,
        help="Number of later parts of the log that are predicted, each from the parts before it.",
    )
    return _PACKS(fit(splits(function)))


@command(bench)
@click.argument("path", type=_PATH)
@_SHA256
@_add_forecast_options
def reviews(path: Path, sha256: str, as_json: bool, **options: Any) -> Report:
    """Score how well packs predict whether a user recalls a flashcard.

    PATH is a log of reviews, a .csv or .parquet file. The columns are named as in Anki's table revlog, in py-fsrs or in
    srs-benchmark.

    Example: memlab bench reviews revlog.csv --packs fsrs --fit fsrs
    """
    from memlab.io.ingest import check_digest
    from memlab.science.bench import bench_reviews

    frame = read_frame(path, dates=True)
    return _run_forecast(
        bench_reviews,
        frame,
        as_json,
        dataset=path.resolve().stem,
        sha256=check_digest(path, sha256),
        **options,
    )


@command(bench, read)
@click.option(
    "--within-days",
    type=click.FloatRange(0.01, 3650),
    default=7.0,
    show_default=True,
    help="Number of days that each forecast covers.",
)
@_add_forecast_options
def wanted(lab: memlab.Lab, as_json: bool, **options: Any) -> Report:
    """Score how well packs predict whether a memory of LAB is wanted within a few days.

    A memory is wanted when a recall shows it and its feedback is positive.

    Example: memlab bench wanted my.memlab --within-days 7
    """
    from memlab.science.bench import bench_wanted

    return _run_forecast(bench_wanted, lab, as_json, **options)


def _run_forecast(
    bench: Callable[..., ForecastResult],
    data: object,
    as_json: bool,
    *,
    packs: tuple[str, ...],
    fit: tuple[str, ...],
    **options: Any,
) -> Report:
    """Run a retention benchmark and return its report."""
    progress = not as_json and sys.stderr.isatty()
    result = bench(data, packs=packs or None, fit=fit or None, progress=progress, **options)
    return result.to_dict(), repr(result)


def _run_conversations(
    conversations: tuple[LabelledConversation, ...],
    path: Path,
    digest: str,
    as_json: bool,
    *,
    bench: Callable[..., BenchResult | DynamicsResult] | None = None,
    **options: Any,
) -> Report:
    """Run a benchmark on conversations and return its report."""
    from memlab.science.bench import bench_conversations

    about: dict[str, Any] = {"dataset": path.resolve().stem, "sha256": digest}
    run = partial(bench or bench_conversations, conversations, **about)
    return _run_bench(run, as_json, (conversations,), about, **options)


def _run_bench(
    bench: Callable[..., BenchResult | DynamicsResult],
    as_json: bool,
    source: Sequence[Any],
    about: dict[str, Any],
    *,
    packs: tuple[str, ...],
    budgets: list[int],
    report: Path | None,
    answers: str | None,
    model: tuple[str, str] | None,
    judge: tuple[str, str] | None,
    run: Path | None,
    model_calls: int | None,
    model_tokens: int,
    store: Path | None,
    **options: Any,
) -> Report:
    """Run a benchmark and return its report."""
    shared: dict[str, Any] = {
        "packs": packs or None,
        "progress": not as_json and sys.stderr.isatty(),
    }
    if store is not None:
        if budgets:
            raise click.UsageError("--store works for rankings only: leave out --budgets.")
        options["folder"] = store
    if not budgets:
        if report or answers or model or judge or run:
            raise click.UsageError(
                "--report, --answers, --model, --judge and --run need --budgets."
            )
        result = bench(**shared, **options)
        return result.to_dict(), repr(result)
    if (answers == "model") is not (model is not None and run is not None):
        raise click.UsageError("--answers, --model URL NAME and --run FOLDER belong together.")
    if options.get("labels"):
        raise click.UsageError("--budgets uses the published labels: leave out --evidence.")
    from memlab.science.bench import bench_budgets

    def model_at(address: tuple[str, str]) -> memlab.LanguageModel:
        """Return the language model at an address."""
        return memlab.LanguageModel(
            *address, key=os.environ.get(MODEL_KEY) or None, calls=model_calls, tokens=model_tokens
        )

    models: dict[str, Any] = {
        "answers": "offline" if answers == "offline" else model and model_at(model),
        "judge": judge and model_at(judge),
    }
    shared |= {"budgets": budgets, "folder": run}
    shared |= {name: options[name] for name in ("executor", "embedder")}
    measured = partial(bench_budgets, *source)(**shared, **models, **about)
    return _add_page(measured, report, measured.text(terminal_width()))
