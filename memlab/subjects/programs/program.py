"""The declared operations, with arguments and verbs, and the reader of programs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from memlab.errors import (
    InputError,
    PolicyError,
    PolicyLimitError,
    PolicyNameError,
    PolicySyntaxError,
    PolicyTypeError,
    UnknownName,
    did_you_mean,
)
from memlab.kernel.language import Form, Text, compile_policy, read_forms, slot_of, with_setting
from memlab.kernel.policies import Pack, pack_from_sources
from memlab.kernel.schema import KINDS, OUTCOMES, RELATIONS
from memlab.subjects.programs import arguments
from memlab.subjects.programs.adapting import ESTIMATORS, MISSING, OperableLab, adapt
from memlab.subjects.programs.arguments import Reader

# The maximum number of characters of a memory's text in a result.
_SHOWN = 60

Arguments = Mapping[str, Any]
"""The arguments of an operation by parameter, None if omitted, and ``consent``."""


@dataclass(frozen=True)
class Outcome:
    """The result of an operation as a line, a value and rows, with the number of touched memories."""

    line: str
    value: Any
    rows: list[dict[str, Any]]
    touched: int = 0


@dataclass(frozen=True)
class Operation:
    """The declaration of one operation.

    Attributes
    ----------
    doc
        The effect in a few words.
    does
        The kind of effect: "reads", "adds" (memories or edges) or "decides" (changes policies).
    verb
        The function that carries out the operation.
    required, optional
        The arguments in order, each with its reader. Optional arguments may be omitted at the end, be nil, or be given
        by name, as in ``:horizon "1d"``.
    needs
        A function that returns the number of memories that the operation will touch: the maximum if it is known before
        the run, otherwise the minimum.
    """

    doc: str
    does: Literal["reads", "adds", "decides"]
    verb: Callable[[OperableLab, Arguments], Outcome]
    required: Mapping[str, Reader] = field(default_factory=dict)
    optional: Mapping[str, Reader] = field(default_factory=dict)
    needs: Callable[[OperableLab, Arguments], int] = lambda lab, a: 0

    @property
    def parameters(self) -> dict[str, Reader]:
        """The required and optional parameters with their readers."""
        return {**self.required, **self.optional}


# The verbs of the operations take the lab and the arguments ``a``.


def _remember(lab: OperableLab, a: Arguments) -> Outcome:
    fields = {
        "kind": a["type"],
        "importance": a["importance"],
        "ttl_days": a["ttl"],
        "tags": a["tags"],
    }
    memory = lab.remember(
        a["text"], **{name: value for name, value in fields.items() if value is not None}
    )
    return Outcome(
        f"#{memory.id} {_shorten(memory.text)}", memory, [{"id": memory.id, "text": memory.text}], 1
    )


def _fact(lab: OperableLab, a: Arguments) -> Outcome:
    field_name = "object" if a["sort"] == "object" else "value"
    confidence = {} if a["confidence"] is None else {"confidence": a["confidence"]}
    memory = lab.facts.add(a["subject"], a["predicate"], **{field_name: a["value"]}, **confidence)
    return Outcome(
        f"#{memory.id} {_shorten(memory.text)}", memory, [{"id": memory.id, "text": memory.text}], 1
    )


def _recall(lab: OperableLab, a: Arguments) -> Outcome:
    hits = lab.recall(a["query"], limit=a["limit"])
    rows = [{"rank": hit.rank, "id": hit.id, "score": hit.score, "text": hit.text} for hit in hits]
    line = "; ".join(f"#{hit.id} {_shorten(hit.text)}" for hit in hits[:3])
    return Outcome(line or "nothing", hits, rows, len(hits))


def _recall_needs(lab: OperableLab, a: Arguments) -> int:
    limit = lab.policies.pack.count("limit") if a["limit"] is None else a["limit"]
    return min(int(limit), len(lab))


def _associate(lab: OperableLab, a: Arguments) -> Outcome:
    relation, weight = a["relation"] or "relates-to", 1.0 if a["weight"] is None else a["weight"]
    lab.graph.link(a["from"], a["to"], relation, weight=weight)
    row = {"from": a["from"], "to": a["to"], "relation": relation, "weight": weight}
    return Outcome(f"#{a['from']} {relation} #{a['to']} ({weight:g})", None, [row], 2)


def _feedback(lab: OperableLab, a: Arguments) -> Outcome:
    logged = lab.feedback(a["id"], a["outcome"], source="operation")
    row = {"event": logged.event, "id": logged.memory, "outcome": logged.outcome}
    return Outcome(f"#{logged.memory}: {logged.outcome}", logged, [row], 1)


def _consolidate(lab: OperableLab, a: Arguments) -> Outcome:
    done = lab.upkeep.consolidation.run()
    count = int(done.frame["count"].sum())
    return Outcome(
        f"{count} memories became {len(done)} summaries", done, done.frame.to_dicts(), count
    )


def _set_half_life(lab: OperableLab, a: Arguments) -> Outcome:
    days = a["half-life-days"]
    pack = lab.policies.use(
        _with_half_life(lab.policies.pack, days), reason=f"decay!: a half-life of {days:g} days"
    )
    row = {"pack": pack.name, "hash": pack.hash, "half_life_days": days}
    return Outcome(
        f"base-half-life is {days:g} days, pack {pack.name} [{pack.hash[:12]}]", pack, [row]
    )


def _with_half_life(live: Pack, days: float) -> Pack:
    """Return a pack with another ``base-half-life`` and otherwise the same policies.

    Policies that were installed in single slots are kept.
    """
    text, *inherited = live.sources
    pack = pack_from_sources((with_setting(text, "base-half-life", days), *inherited))
    for slot, policy in live.differing(pack).items():
        pack = pack.with_policy(slot, policy)
    return pack


def _get_policy(lab: OperableLab, a: Arguments) -> Outcome:
    pack = lab.policies.pack
    rows = [
        {"slot": slot, "hash": policy.hash, "source": policy.source}
        for slot, policy in pack.policies.items()
    ]
    return Outcome(f"pack {pack.name} [{pack.hash[:12]}]", pack, rows)


def _set_policy(lab: OperableLab, a: Arguments) -> Outcome:
    version = lab.policies.install(a["name"], a["code"], reason="set-policy-fn")
    row = {"slot": version.slot, "version": version.number, "hash": version.hash}
    return Outcome(f"{version} is active", version, [row])


def _adapt(lab: OperableLab, a: Arguments) -> Outcome:
    options = {name: a[name] for name in ADAPT_OPTIONS if a[name] is not None}
    adapted = adapt(lab, consent=a["consent"], **options)
    return Outcome(repr(adapted), adapted, adapted.frame.to_dicts())


def _stats(lab: OperableLab, a: Arguments) -> Outcome:
    stats = lab.graph.stats(progress=False)
    totals = stats.frames["totals"]
    line = ", ".join(f"{value:g} {measure}" for measure, value in totals.iter_rows())
    return Outcome(line, stats, totals.to_dicts())


def _trace(lab: OperableLab, a: Arguments) -> Outcome:
    trace = lab.graph.trace(a["id"], 2 if a["depth"] is None else a["depth"])
    paths = "1 path" if len(trace.frame) == 1 else f"{len(trace.frame)} paths"
    return Outcome(paths, trace, trace.frame.to_dicts(), len(trace.frame))


def _activate(lab: OperableLab, a: Arguments) -> Outcome:
    options = {name: a[name] for name in ("steps", "decay", "threshold") if a[name] is not None}
    frame = lab.graph.activate(a["seeds"], **options)
    line = ", ".join(
        f"{row['name']} {row['activation']:.3g}" for row in frame.head(3).iter_rows(named=True)
    )
    return Outcome(line, frame, frame.to_dicts(), len(frame))


def _shorten(text: str) -> str:
    """Return a text on one line of at most 60 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"


ADAPT_OPTIONS: dict[str, Reader] = {
    "missing": arguments.one_of(MISSING),
    "horizon": arguments.span,
    "cluster": arguments.text,
    "estimator": arguments.one_of(ESTIMATORS),
    "level": arguments.number(0.5, 0.999),
    "seed": arguments.integer(0, 2**32 - 1),
}
"""The arguments of ``(adapt-policy)``. All are optional, by position or by name: ``(adapt-policy "zero" :cluster
"day")``."""


# The order is that of the reference. ``needs`` is declared only for operations that can exceed the fuel.
OPERATIONS: dict[str, Operation] = {
    "remember": Operation(
        "remember a text",
        "adds",
        _remember,
        {"text": arguments.text},
        {
            "type": arguments.kind,
            "importance": arguments.number(0, 1),
            "ttl": arguments.ttl,
            "tags": arguments.texts,
        },
        needs=lambda lab, a: 1,
    ),
    "fact": Operation(
        "remember a fact about an entity",
        "adds",
        _fact,
        {"subject": arguments.text, "predicate": arguments.text, "value": arguments.text},
        {"confidence": arguments.number(0, 1), "sort": arguments.one_of(("value", "object"))},
        needs=lambda lab, a: 1,
    ),
    "recall": Operation(
        "recall memories for a query",
        "reads",
        _recall,
        {"query": arguments.text},
        {"limit": arguments.integer(1, 10_000)},
        needs=_recall_needs,
    ),
    "associate": Operation(
        "join two memories",
        "adds",
        _associate,
        {"from": arguments.memory_id, "to": arguments.memory_id},
        {"relation": arguments.relation, "weight": arguments.number(0, 1)},
        needs=lambda lab, a: 2,
    ),
    "feedback": Operation(
        "record whether a memory helped",
        "adds",
        _feedback,
        {"id": arguments.memory_id, "outcome": arguments.one_of(OUTCOMES)},
        needs=lambda lab, a: 1,
    ),
    "consolidate": Operation(
        "replace old memories by summaries",
        "adds",
        _consolidate,
        needs=lambda lab, a: int(lab.upkeep.consolidation.run(dry_run=True).frame["count"].sum()),
    ),
    "decay!": Operation(
        "set the half-life of memories in days",
        "decides",
        _set_half_life,
        {"half-life-days": arguments.number(1e-6, 1e9)},
    ),
    "get-policy": Operation("show the active policies", "reads", _get_policy),
    "set-policy-fn": Operation(
        "install a policy in its slot",
        "decides",
        _set_policy,
        {"name": arguments.slot, "code": arguments.code},
    ),
    "adapt-policy": Operation(
        "propose a better policy from the log; with consent, install it or roll back",
        "decides",
        _adapt,
        optional=ADAPT_OPTIONS,
    ),
    "stats": Operation("show statistics of all memories", "reads", _stats),
    "trace": Operation(
        "show the paths from a memory to others",
        "reads",
        _trace,
        {"id": arguments.memory_id},
        {"depth": arguments.integer(1, 10)},
        needs=lambda lab, a: 1,
    ),
    "activate": Operation(
        "spread activation from some memories",
        "reads",
        _activate,
        {"seeds": arguments.ids},
        {
            "steps": arguments.integer(0, 100),
            "decay": arguments.number(0, 1),
            "threshold": arguments.number(),
        },
        needs=lambda lab, a: 1 if a["steps"] == 0 else len(a["seeds"]),
    ),
}


# A program is data. Its text is checked completely, and never executed as Python code.

# The limits of a text, so that reading it takes at most a second. The limits for a memory are smaller, because its
# operations are read at every recall that shows it.
MAX_CHARACTERS = 1_000_000
MAX_OPERATIONS = 1_000
_MAX_OF_A_MEMORY = 100
_CHARACTERS_OF_A_MEMORY = 20_000
_FORMS = 100_000
# Readers of words that a lab may restrict to the words of the schema, and symbols for an omitted argument.
_CLOSED = {arguments.kind: KINDS, arguments.relation: RELATIONS}
_NOTHING = ("nil", "None")


@dataclass(frozen=True)
class Call:
    """One operation of a program, with its arguments by name, None if omitted.

    ``_places`` has the form of each argument that is not omitted.
    """

    name: str
    operation: Operation
    arguments: dict[str, Any]
    source: str
    line: int
    _form: Form = field(repr=False)
    _text: Text = field(repr=False)
    _places: dict[str, Form] = field(default_factory=dict, repr=False)

    def error(
        self, kind: type[PolicyError], message: str, parameter: str | None = None
    ) -> PolicyError:
        """Return an error with a caret under the operation or one of its arguments."""
        form = self._form if parameter is None else self._places.get(parameter, self._form)
        return self._text.error(kind, message, form)


@dataclass(frozen=True)
class Program:
    """Checked operations in order, with the SHA-256 of their text."""

    calls: tuple[Call, ...]
    source: str
    hash: str

    def __len__(self) -> int:
        return len(self.calls)

    def check_ids(self, count: int) -> None:
        """Raise PolicyNameError for a memory id that will not exist when the program runs.

        The lab has ``count`` memories at the start. Each operation that adds a memory creates the next id.
        """
        for call in self.calls:
            for name, reader in call.operation.parameters.items():
                if reader not in (arguments.memory_id, arguments.ids):
                    continue
                value = call.arguments[name]
                # Ids that earlier operations of the program create are valid too.
                wrong = next(
                    (id for id in (value if isinstance(value, list) else [value]) if id > count),
                    None,
                )
                if wrong is not None:
                    state = f"There are {count}" if count else "There is none yet"
                    raise call.error(
                        PolicyNameError, f"No memory has the id {wrong}. {state}.", name
                    )
            count += call.name in ("remember", "fact")

    def check_words(self) -> None:
        """Raise PolicyNameError for a kind or relation that is not in the schema.

        It is called for a lab that accepts no other words.
        """
        for call in self.calls:
            for name, reader in call.operation.parameters.items():
                words = _CLOSED.get(reader)
                value = call.arguments[name]
                if words is not None and value is not None and value not in words:
                    raise call.error(PolicyNameError, str(UnknownName(name, value, words)), name)


def read_program(
    source: str,
    *,
    file: str | None = None,
    limit: int = MAX_OPERATIONS,
    characters: int = MAX_CHARACTERS,
) -> Program:
    """Read a program, and check all its names, arguments, types and limits.

    Parameters
    ----------
    source
        The text.
    file
        The name of the file of the text, for messages.
    limit
        The maximum number of operations.
    characters
        The maximum number of characters.

    Returns
    -------
    Program
        The checked operations.

    Raises
    ------
    PolicyError
        If the text is invalid: a PolicySyntaxError, PolicyNameError, PolicyTypeError or PolicyLimitError with line,
        column and caret.

    Examples
    --------
    >>> [call.name for call in read_program('(remember "tabs" "preference" 0.8 "30d") (stats)').calls]
    ['remember', 'stats']
    """
    if not isinstance(source, str):
        raise InputError(
            f'Operations must be a text such as (recall "tabs?"), not {type(source).__name__}.'
        )
    text = Text(source, None, file or "operations")
    forms = read_forms(text, characters=characters, forms=_FORMS)
    if not forms:
        raise text.error(
            PolicySyntaxError,
            'There is no operation in the text. Write one, such as (recall "tabs?").',
            None,
        )
    if len(forms) > limit:
        raise text.error(
            PolicyLimitError,
            f"There are more than {limit:,} operations. Split the text.",
            forms[limit],
        )
    calls = tuple(_read_call(form, text) for form in forms)
    return Program(calls, source, hashlib.sha256(source.encode()).hexdigest())


def check_operations(sources: Sequence[str | None]) -> None:
    """Raise PolicyError if a memory cannot store a text as its operations."""
    for row, source in enumerate(sources):
        if source is not None:
            read_program(
                source,
                file=f"row {row}, field operations",
                limit=_MAX_OF_A_MEMORY,
                characters=_CHARACTERS_OF_A_MEMORY,
            )


def _read_call(form: Form, text: Text) -> Call:
    """Read one operation, and check its name and its arguments."""
    # Two operations need further checks: a policy must compile, and an edge needs two different memories.
    if form.kind != "call" or not form.head:
        raise text.error(
            PolicySyntaxError, 'An operation must be a form such as (recall "tabs?").', form
        )
    name, items = form.head, form.items[1:]
    operation = OPERATIONS.get(name)
    if operation is None:
        message = f'There is no operation "{name:.60}". {did_you_mean(name, OPERATIONS)}'
        raise text.error(PolicyNameError, message, form.items[0])
    forms = _match_parameters(name, operation, items, form, text)
    arguments: dict[str, Any] = dict.fromkeys(operation.parameters)
    for parameter, item in forms.items():
        if parameter in operation.optional and item.kind == "symbol" and item.text in _NOTHING:
            continue
        arguments[parameter] = operation.parameters[parameter](parameter, item, text)
    if name == "set-policy-fn":
        _check_policy(arguments, items[1], text)
    if name == "associate" and arguments["from"] == arguments["to"]:
        raise text.error(
            PolicyTypeError, f"Memory {arguments['from']} cannot be joined to itself.", items[1]
        )
    return Call(
        name,
        operation,
        arguments,
        text.source[form.start : form.stop],
        text.line(form.start),
        form,
        text,
        forms,
    )


def _match_parameters(
    name: str, operation: Operation, items: Sequence[Form], form: Form, text: Text
) -> dict[str, Form]:
    """Match forms to parameters by position, and to optional parameters also by name.

    Raises PolicyTypeError for a missing, surplus or repeated argument.
    """
    # Forms before the first name of an optional parameter are positional. After it come pairs of name and value.
    parameters = list(operation.parameters)
    minimum, maximum = len(operation.required), len(parameters)
    optional = "".join(f" [{parameter}]" for parameter in operation.optional)
    shape = f"({' '.join([name, *operation.required])}{optional})"
    positional = next(
        (index for index, item in enumerate(items) if _is_name(item, operation)), len(items)
    )
    if positional > maximum:
        count = (
            "no"
            if not maximum
            else f"{maximum}"
            if maximum == minimum
            else f"{minimum} to {maximum}"
        )
        raise text.error(
            PolicyTypeError, f"{name} takes {count} argument(s): write {shape}.", items[maximum]
        )
    if positional < minimum:
        raise text.error(
            PolicyTypeError, f"Argument {parameters[positional]} is missing: write {shape}.", form
        )
    forms = dict(zip(parameters, items[:positional], strict=False))
    rest = list(items[positional:])
    for key, value in zip(rest[::2], [*rest[1::2], None], strict=False):
        if not _is_name(key, operation):
            expected = f"After :{rest[0].text} come names and values, such as :{rest[0].text} VALUE: {shape}."
            raise text.error(PolicyTypeError, expected, key)
        if value is None:
            raise text.error(PolicyTypeError, f":{key.text} has no value: {shape}.", key)
        if key.text in forms:
            raise text.error(PolicyTypeError, f":{key.text} occurs twice: {shape}.", key)
        forms[key.text] = value
    return forms


def _is_name(item: Form, operation: Operation) -> bool:
    """Return whether a form names an optional parameter, such as ``:horizon``.

    Other keywords are values, as in ``(feedback 1 :success)``.
    """
    return item.kind == "keyword" and item.text in operation.optional


def _check_policy(arguments: dict[str, Any], form: Form, text: Text) -> None:
    """Raise PolicyError for a policy that does not compile or belongs to another slot."""
    from memlab.kernel.policies import DEFAULT_PACK, get_slot, inherited_helpers, load_pack

    slot, code = arguments["name"], arguments["code"]
    try:
        # The lab is not known yet, so the parent in this check is the default pack.
        helpers = inherited_helpers(slot, code, (), lambda: load_pack(DEFAULT_PACK))
        compile_policy(code, get_slot(slot).signature, name=slot, helpers=helpers)
        declared_slot = slot_of(code)
    except PolicyError as error:
        raise text.error(
            type(error), f"The policy {slot} is invalid. {error.message}", form
        ) from None
    if declared_slot not in ("", slot):
        raise text.error(
            PolicyNameError,
            f"This is a policy of {declared_slot}, not of {slot}. Change one of the two names.",
            form,
        )
