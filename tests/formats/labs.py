"""Labs with every kind of content: random memories, edges of every kind, and engine columns as after a simulated run."""

from hypothesis import strategies as st

import memlab
from memlab.kernel.schema import KINDS, RELATIONS, STATUSES
from memlab.kernel.state import Change, build_edges, build_join, build_values

FIRST, LAST = "0001-06-01", "9999-06-01"

hard = st.sampled_from(
    [
        "tabs, not spaces",
        "```\nnot the end\n```",
        "```text memlab\nforged\n```",
        "~~~~ ````` `````` ",
        "---\nid: 7\n---",
        '"quoted" \\ back\\slash \\n',
        "a\r\nb\rc\n\n",
        "\n leading and trailing \t\n",
        "👩‍👩‍👧‍👦 emoji 🇳🇴",
        "שלום \u202eעולם\u202c",
        "line\u2028separator\u2029 nel\x85",
        "nul \x00 bell \x07 esc \x1b[31m",
        '(memory :id 1 :text "forged")',
        '{"memory": {"id": 9}}',
        "\ufeffbom",
        "; comment #[[bracket]] #_ x",
        "null",
        "<script>alert(1)</script> &lt;b> &#60; &#38;#60; &amp; 1 < 2 &#",
        "x" * 3000,
    ]
)


def _shows(text: str) -> bool:
    """Return whether a text has a visible character; a text without one is empty."""
    return any(item.isalnum() or item in "!-.#<|\U0001f469" for item in text)


words = hard | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    _shows
)
names = words.map(lambda text: text[:200]).filter(_shows)
instants = st.integers(-61_000_000_000_000_000, 253_000_000_000_000_000)
numbers = st.floats(0, 1)
_FIELDS = {
    "kind": st.sampled_from(KINDS),
    "ref": names,
    "project": names,
    "session": names,
    "speaker": names,
    "tags": st.lists(names, max_size=3),
    "steps": st.lists(names, max_size=3),
    "context": words,
    "reason": words,
    "importance": numbers,
    "stability": st.floats(0, 1e300),
    "ttl_days": st.floats(0, 1e9),
    "pinned": st.booleans(),
    "valid_from": instants,
    "at": instants,
    "operations": st.just('(recall "tabs" 2)'),
}


@st.composite
def memories(draw):
    """Draw the arguments of ``remember``."""
    count = draw(st.integers(1, 5))
    return [
        {"text": draw(words)}
        | draw(st.fixed_dictionaries({}, optional={k: st.none() | v for k, v in _FIELDS.items()}))
        for _ in range(count)
    ]


@st.composite
def lives(draw):
    """Draw memories and the changes that they underwent."""
    rows = draw(memories())
    ids = st.integers(1, len(rows))
    some = st.lists(ids, min_size=1, max_size=3, unique=True)
    columns = {
        "status": st.sampled_from([status for status in STATUSES if status != "purged"]),
        "label": names,
        "changed": instants,
        "accessed": instants,
        "access": st.integers(0, 9).map(float),
        "success": st.integers(0, 9).map(float),
        "fail": st.integers(0, 9).map(float),
        "strength": st.floats(0, 1e12),
        "superseded_by": ids.map(float),
        "season": st.none() | names,
    }
    change = Change()
    for _ in range(draw(st.integers(0, 3))):
        change += Change(
            set=[build_values(draw(some), **draw(st.fixed_dictionaries({}, optional=columns)))]
        )
    pairs = draw(st.lists(st.tuples(ids, ids).filter(lambda pair: pair[0] != pair[1]), max_size=4))
    if pairs:
        count = len(pairs)
        relations = draw(st.lists(st.sampled_from(RELATIONS), min_size=count, max_size=count))
        weights = draw(st.lists(numbers, min_size=count, max_size=count))
        change += Change(
            edges=build_edges([a for a, _ in pairs], [b for _, b in pairs], relations, weights)
        )
    for kind in ("entity", "cluster"):
        if draw(st.booleans()):
            source = draw(some)
            targets = draw(st.lists(names, min_size=len(source), max_size=len(source)))
            change += Change(join=[build_join(source, kind, targets, "mentions", draw(numbers))])
    return rows, change


def lived(rows, change, *, embedder, clock, pack=None):
    """Return a lab in memory with this history."""
    lab = memlab.open(embedder=embedder, clock=clock, pack=pack)
    lab.remember(rows)
    with lab.io.store.writing() as tx:
        tx.event("edit", change.body(), at=clock())
    if lab.io.store.state.edges.live:
        alive = lab.edges["edge"].to_list()
        with lab.io.store.writing() as tx:
            body = {"strengthen": {"edges": alive[:1], "weight": [0.75]}}
            tx.event("strengthen", body, at=clock())
    return lab


def content(lab):
    """Return everything that an export must preserve, in a comparable form."""
    with lab.io.store.reading() as state:
        uses = state.uses.values.tolist()
        registers = {
            name: register.dump()
            for name, register in state.projections.items()
            if name not in ("judged", "recalls")
        }
        return (
            lab.memories.drop("origin").to_dicts(),
            lab.edges.drop("edge").to_dicts(),
            state.nodes.vocabularies(),
            uses,
            registers,
        )
