"""Score every policy that README, how-to pages and notebooks install or recommend, next to the default pack.

    python experiments/documented_policies.py                          # three generated conversations
    MEMLAB_DATA=FOLDER python experiments/documented_policies.py       # also LoCoMo and BEAM development conversations

A policy is recommended if a code block or cell passes it to ``install``, ``use``, ``score`` or ``challenge``, or is a cell
of ``%%policy``. It may lose at most .03 hit@5 on each conversation; ``tests/test_documented_policies.py`` checks that on
generated ones. A policy that is shown for contrast has the comment ``for comparison: worse`` with a figure. Names of packs
and features are baselines and not scored. The generated conversations are worlds of ``memlab.science.simulation``, on
which no policy was tuned.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import memlab
from memlab.errors import PolicyError, UnknownName
from memlab.io.ingest import read_beam, read_locomo
from memlab.kernel.base.display import clip
from memlab.science.simulation import MessageEvent, Phase, QuestionEvent, World

ROOT = Path(__file__).parents[1]
LOSS = 0.03
"""Maximum loss of hit@5 on a conversation."""
# Methods that install or recommend their policies.
_VERBS = ("install", "use", "score", "challenge")
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CELL = re.compile(r"%%policy\s+(?P<slot>[\w-]+)[^\n]*\n(?P<text>.*)\Z", re.DOTALL)
_CONTRAST = re.compile(r"for comparison: worse[^\n]*\.\d\d")
_FN = re.compile(r"\(fn\s*(?P<rest>\[.*)\)\Z", re.DOTALL)


@dataclass(frozen=True)
class Documented:
    """A policy or pack in a document.

    ``problem`` says why it cannot be scored; it is empty for others. ``is_error`` says whether its block shows an error.
    """

    position: str
    slot: str
    text: str
    is_contrast: bool
    problem: str = ""
    is_error: bool = False

    @property
    def key(self) -> str:
        """The position with the text, which identifies the policy."""
        return f"{self.position} {self.text}"

    @property
    def pack(self) -> str:
        """The text of a pack in which the policy replaces that of the default pack."""
        bare = re.sub(r"(?m);[^\n]*$", "", self.text).strip()
        if bare.startswith("(pack"):
            return self.text
        match = _FN.search(bare)
        head = match["rest"] if match is not None else f"[] {bare}"
        front = bare[: match.start()] if match is not None else ""
        return f'(pack documented "A documented policy." :inherits memlab)\n{front}(defpolicy {self.slot} {head})'


def list_blocks() -> Iterator[tuple[str, str]]:
    """Yield the position and text of each code block of README and how-to pages, and of each cell of the notebooks."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs" / "howto").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path.relative_to(ROOT)}:{line}", match[2]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] == "code":
                yield f"{path.relative_to(ROOT)}:{number}", "".join(cell["source"])


def find_policies() -> list[Documented]:
    """Return the policies that documents install or recommend."""
    policies: list[Documented] = []
    names: dict[str, str] = {}
    document = ""
    for position, block in list_blocks():
        if position.partition(":")[0] != document:
            # a name has its text in the whole document, not in others
            document, names = position.partition(":")[0], {}
        cell = _CELL.search(block)
        if cell is not None:
            policies.append(_describe(position, cell["slot"], cell["text"], "", block))
            continue
        if re.search(r"\(lab\.(?:policies\.)?(?:install|use|score|challenge)\b", block):
            policies += _find_in_hy(position, block)
            continue
        code = "".join(line for line in block.splitlines(True) if not line.startswith(("%", "!")))
        try:
            tree = ast.parse(code)
        except SyntaxError:
            continue
        lines = code.splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                names |= {
                    target.id: str(node.value.value)
                    for target in node.targets
                    if isinstance(target, ast.Name)
                }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _VERBS:
                assert isinstance(node.func, ast.Attribute)
                slot = "recall-score"
                arguments = [
                    *node.args,
                    *(item.value for item in node.keywords if item.arg != "reason"),
                ]
                if node.func.attr == "install" and isinstance(node.args[0], ast.Constant):
                    slot, arguments = str(node.args[0].value), arguments[1:]
                for argument in arguments:
                    for line, text in _list_texts(argument, names):
                        policies.append(
                            _describe(
                                position,
                                slot,
                                text,
                                "\n".join(lines[max(line - 2, 0) : line]),
                                code,
                            )
                        )
    return policies


def _find_in_hy(position: str, block: str) -> Iterator[Documented]:
    """Yield the policies that a program in Hy contains as a whole, quoted or as text; others are computed."""
    slot = re.search(r'policies\.install\s+"([\w-]+)"', block)
    for match in re.finditer(r"(?<=['`\"])\((?:fn \[|pack )", block):
        depth, end = 0, match.start()
        while end < len(block) and (depth or end == match.start()):
            depth += {"(": 1, ")": -1}.get(block[end], 0)
            end += 1
        text = block[match.start() : end]
        if "~" not in text:
            yield _describe(position, slot[1] if slot else "recall-score", text, block, block)


def _list_texts(node: ast.expr, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each policy in an argument: a text, a name of one, or a list or dict of them."""
    if isinstance(node, ast.Constant | ast.Name):
        text = names.get(node.id, "") if isinstance(node, ast.Name) else str(node.value)
        if text.lstrip().startswith(("(", ";")):
            yield node.lineno, text
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _list_texts(value, names)
    elif isinstance(node, ast.List | ast.Tuple):
        for item in node.elts:
            yield from _list_texts(item, names)


def _describe(position: str, slot: str, text: str, around: str, block: str) -> Documented:
    """Return a policy with the reason why it cannot be scored."""
    is_contrast = _CONTRAST.search(text) is not None or _CONTRAST.search(around) is not None
    policy = Documented(position, slot, text, is_contrast)
    try:
        memlab.open(pack=policy.pack)
    except (PolicyError, UnknownName) as error:
        problem = str(error).partition("\n")[0]
        return replace(policy, problem=problem, is_error="Error" in block)
    return policy


# -- conversations ----------------------------------------------------------------------------------------------------

_PHASES = (Phase(0.9, questions=0.0), Phase(1.0))
WORLDS = (
    World("office", seed=101, days=40, messages_per_day=12, questions_per_day=2.5, phases=_PHASES),
    World("family", seed=202, days=60, projects=3, people=4, messages_per_day=7, phases=_PHASES),
    World("move", seed=303, days=30, projects=5, synonyms=0.8, messages_per_day=16, phases=_PHASES),
)
"""Settings of generated conversations, in which the last tenth of the days has all questions."""


def open_world(world: World) -> memlab.Lab:
    """Return a lab with the messages before the first question of a world, and its questions."""
    events = world.events()
    queries = [event for event in events if isinstance(event, QuestionEvent)]
    now = queries[0].at
    messages = [event for event in events if isinstance(event, MessageEvent) and event.at < now]
    lab = memlab.open(clock=lambda: now)
    lab.remember([event.row() | {"at": event.at} for event in messages], linking="off")
    refs = {event.ref for event in messages}
    rows = {
        (event.text, event.project): {
            "query": event.text,
            "project": event.project,
            "wants": [ref for ref, grade in event.useful.items() if grade == 1 and ref in refs],
        }
        for event in queries
    }
    lab.questions.add([row for row in rows.values() if row["wants"]])
    return lab


def open_benchmarks(data: Path) -> Iterator[tuple[str, memlab.Lab]]:
    """Yield a lab for each development conversation of LoCoMo and each BEAM chat, with its questions."""
    locomo = list(read_locomo(data / "locomo" / "locomo-dev5.json"))
    beam = list(read_beam(data / "beam100k")) if (data / "beam100k").is_dir() else []
    for item in (*locomo, *beam):
        rows = list(item.conversation.rows())
        now = int(max(row["at"] for row in rows).timestamp() * 1_000_000) + 1
        lab = memlab.open(clock=lambda now=now: now)
        lab.load(rows, progress=False)
        lab.questions.add([item])
        yield item.conversation.name, lab


def score_policies(lab: memlab.Lab, policies: list[Documented]) -> dict[str, float]:
    """Return the hit@5 of the active pack and of each policy by its key."""
    frame = lab.score({policy.key: policy.pack for policy in policies}, metrics="hit@5").frame
    return dict(zip(frame["policy"].to_list(), frame["value"].to_list(), strict=True))


def pool(scores: list[tuple[int, dict[str, float]]]) -> dict[str, float]:
    """Return the mean scores of several conversations, weighted by their questions."""
    total = sum(count for count, _ in scores)
    return {key: sum(n * values[key] for n, values in scores) / total for key in scores[0][1]}


def main() -> None:
    policies = find_policies()
    scored = [policy for policy in policies if not policy.problem]
    groups: dict[str, list[tuple[int, dict[str, float]]]] = {}
    labs = [(world.name, open_world(world)) for world in WORLDS]
    if "MEMLAB_DATA" in os.environ:
        labs += open_benchmarks(Path(os.environ["MEMLAB_DATA"]))
    for name, lab in labs:
        # a BEAM chat has 18 questions, so that one of them is .056
        group = "beam" if name.startswith("beam") else name
        groups.setdefault(group, []).append((len(lab.questions), score_policies(lab, scored)))
    pooled = {name: pool(scores) for name, scores in groups.items()}
    for name, values in pooled.items():
        count = sum(count for count, _ in groups[name])
        print(f"{name}: {count} questions, hit@5 of the default pack {values['active']:.3f}")
    print("hit@5 less the default pack's, by conversation")
    for policy in scored:
        changes = [values[policy.key] - values["active"] for values in pooled.values()]
        mark = "contrast" if policy.is_contrast else "LOSES" if min(changes) < -LOSS else ""
        numbers = " ".join(f"{change:+.3f}" for change in changes)
        print(f"{numbers}  {mark:8} {policy.position} {policy.slot}: {clip(policy.text)}")
    for policy in policies:
        if policy.problem:
            print(f"not scored: {policy.position}: {clip(policy.problem, 90)}")


if __name__ == "__main__":
    main()
