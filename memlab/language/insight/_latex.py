r"""A policy as mathematics: LaTeX that MathJax, KaTeX and LaTeX itself set alike.

It is written from the graph, so helpers are inlined and ``(/ x 30)`` is a fraction again, but compiled anew with every
``(param ...)`` left as a name: :math:`\theta_{damping}`, with its value below. What is used more than once gets a name
too, where that is shorter than to repeat it, and so does every choice within a larger expression; so the text stays
linear in the graph. Names and strings are set character by character: none can leave its group or start a command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from memlab.language._check import Checker, Env
from memlab.language._dag import Node, reachable
from memlab.language._definition import definition
from memlab.language._derived import Derived
from memlab.language._forms import FORMS
from memlab.language._library import helpers_of
from memlab.language._params import Param, declared_param
from memlab.language._reader import Form, Text, canonical
from memlab.language.insight._symbols import (
    AND,
    ATOM,
    OR,
    POWER,
    PRODUCT,
    SUM,
    TEST,
    Math,
    cases,
    constant,
    divisor,
    name_text,
    number_text,
    parameter_text,
    set_test,
    string_text,
    width,
    word_set,
)

if TYPE_CHECKING:
    from memlab.language._policy import Policy

__all__ = ["latex"]

_WIDE = 72
"""Characters of a line: about the text width of a page."""
_REPEAT = 20
"""A shared expression is named when repeating it would cost more characters than this."""

_FUNCTIONS = {
    "tanh": r"\tanh",
    "sign": r"\operatorname{sgn}",
    "clamp": r"\operatorname{clamp}",
    "min": r"\min",
    "max": r"\max",
    "if-null": r"\operatorname{ifnull}",
    "slate-min": r"\min_{S}",
    "slate-max": r"\max_{S}",
    "slate-mean": r"\operatorname{mean}_{S}",
    "slate-rank": r"\operatorname{rank}_{S}",
    "min-max": r"\operatorname{minmax}_{S}",
    "slate-index": r"\operatorname{index}_{S}",
    "slate-count": r"\operatorname{count}_{S}",
    "interpreted": r"\operatorname{program}_{S}",
}
_CHAINS = {"and": 0, "or": 0, "min": 0, "max": 0, "if": 2}
"""Where an operation of the same kind continues it: ``(and (and a b) c)``, and the ``else`` of an ``if``."""
_LOGIC = {"and": (AND, r"\wedge"), "or": (OR, r"\vee")}
_RELATIONS = {"=": "=", "same": "=", "iff": "=", "<": "<", "<=": r"\leq"}
_OPPOSITE = {"<": ">", r"\leq": r"\geq"}


def latex(policy: Policy) -> str:
    """The policy as LaTeX for display mathematics, without the dollar signs; a record gives one equation a field.

    ``S`` is the slate over which an aggregate ranges, ``null`` a missing value; a test that is null does not hold.

    >>> from memlab.language import Input, Signature, compile_policy
    >>> slot = Signature("score", [Input("age_days")])
    >>> print(latex(compile_policy("(fn [age-days] (/ age-days 30))", slot)))
    \\mathrm{score} = \\frac{\\mathrm{age\\text{-}days}}{30}
    """
    root = _symbolic(policy)
    writer = _Writer(root, policy.derived)
    if root.op == "record":
        lines = [(f"{name_text(name)}'", arg) for name, arg in zip(root.value, root.args, strict=True)]
    else:
        field = None if policy._of is None else policy._of[1]
        lines = [(name_text(policy.name) if field is None else f"{name_text(field)}'", root)]
    equations = [(left, writer.lines(node)) for left, node in lines]
    where = [(writer.names[node.index], writer.lines(node)) for node in writer.named()]
    where += _values(_met(root, policy.params))
    if where:
        where[0] = (rf"\text{{where }} {where[0][0]}", where[0][1])
    if not equations:
        return r"\text{nothing changes}"
    if len(equations) == 1 and not where and len(equations[0][1]) == 1:
        return f"{equations[0][0]} = {equations[0][1][0]}"
    rows = [
        rf"{left} &= {first}" + "".join(f" \\\\\n&\\quad {line}" for line in rest)
        for left, (first, *rest) in (*equations, *where)
    ]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def _symbolic(policy: Policy) -> Node:
    """The graph of a policy whose parameters are inputs, named with a colon in front, which no feature has.

    A policy lifted from lists keeps its parameters as numbers: where a range begins must be one.
    """
    if policy._of is not None:
        record, field = policy._of
        root = _symbolic(record)
        fields: dict[str, Node] = dict(zip(root.value, root.args, strict=True))
        return fields[field]
    if not policy.params:
        return policy.root
    from memlab.language._policy import bound_arguments, read_parts  # which attaches this function to policies

    source, name, helpers, file = policy._given
    known = dict(helpers_of(helpers, file))
    if isinstance(source, str):
        text = Text(source, name, file)
        parts, own = read_parts(text)
        known |= own
    else:
        text, parts = source.text, definition(source.form, source.text)
    if any(canonical(argument.text) in policy.signature.lists for argument in parts.arguments):
        return policy.root
    checker = Checker(text, policy.signature, known, {}, {**FORMS, "param": _as_name})
    return checker.result(parts.body, bound_arguments(checker, parts))


def _as_name(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    return checker.dag.input(f":{declared_param(form, checker.text).name}", "num")


def _met(root: Node, params: Mapping[str, Param]) -> list[Param]:
    names = {str(node.value)[1:] for node in reachable(root) if node.op == "input" and str(node.value)[0] == ":"}
    return [param for name, param in params.items() if name in names]


def _values(params: list[Param]) -> list[tuple[str, list[str]]]:
    """The values of parameters, as many to a line as fit."""
    rows: list[tuple[str, list[str]]] = []
    for param in params:
        left, right = parameter_text(param.name), number_text(param.value)
        if rows and width(rows[-1][1][0]) + width(left) + len(right) < _WIDE - 20:
            rows[-1][1][0] += rf", \; {left} = {right}"
        else:
            rows.append((left, [right]))
    return rows


class _Writer:
    """``text`` of each node, arguments first; ``names`` are those of the nodes that are written once, below."""

    def __init__(self, root: Node, derived: Mapping[str, Derived]) -> None:
        self.derived = derived
        self.names: dict[int, str] = {}
        self.text: dict[int, Math] = {}
        self.nodes = reachable(root)
        tops = {a.index for a in root.args} if root.op == "record" else {root.index}
        uses = Counter(a.index for node in self.nodes for a in node.args)
        self.flat = {
            a.index
            for node in self.nodes
            for place, a in enumerate(node.args)
            if a.op == node.op and uses[a.index] == 1 and _CHAINS.get(node.op) == place
        }
        for node in self.nodes:
            if node.op == "record":
                continue
            math = self.text[node.index] = self.write(node)
            choice = node.op in ("if", "table") and node.index not in self.flat | tops
            again = bool(node.args) and (uses[node.index] - 1) * width(math.text) > _REPEAT
            if choice or again:
                self.names[node.index] = ""
        for place, node in enumerate(self.named(), 1):
            self.names[node.index] = f"u_{{{place}}}"
        for node in self.nodes:
            if node.op != "record":
                self.text[node.index] = self.write(node)

    def named(self) -> list[Node]:
        """What has a name, in the order in which a reader meets it."""
        found: dict[int, Node] = {}
        seen: set[int] = set()
        stack = [self.nodes[-1]]
        while stack:
            node = stack.pop()
            if node.index not in seen:
                seen.add(node.index)
                if node.index in self.names:
                    found[node.index] = node
                stack.extend(reversed(node.args))
        return list(found.values())

    def of(self, node: Node) -> Math:
        """A node where it is used: its name, if it has one."""
        name = self.names.get(node.index)
        return self.text[node.index] if name is None else Math(name or "u", ATOM)

    def within(self, node: Node, least: int) -> str:
        return self.of(node).within(least)

    def lines(self, node: Node) -> list[str]:
        """A right-hand side; what is long breaks before its signs."""
        whole = self.text[node.index].text
        if width(whole) <= _WIDE:
            return [whole]
        if node.op in ("and", "or"):
            level, sign = _LOGIC[node.op]
            links = [self.within(link, level) for link in self.links(node)]
            parts = [links[0], *(f"{sign} {link}" for link in links[1:])]
        elif len(terms := self.terms(node)) > 1:
            parts = [f"{'-' if sign < 0 else '+'} {term.within(PRODUCT)}" for sign, term in terms]
            parts[0] = parts[0].removeprefix("+ ")
        else:
            return [whole]
        lines = parts[:1]
        for part in parts[1:]:
            if width(lines[-1]) + width(part) > _WIDE:
                lines.append(part)
            else:
                lines[-1] += f" {part}"
        return lines

    def write(self, node: Node) -> Math:
        op, args, value = node.op, node.args, node.value
        if op == "const":
            return constant(value)
        if op == "input":
            return self.feature(str(value))
        if op in ("+", "-", "neg", "*"):
            return self.sum(node)
        if op in ("and", "or"):
            level, sign = _LOGIC[op]
            return Math(f" {sign} ".join(self.within(a, level) for a in self.links(node)), level)
        if op == "not":
            if args[0].index not in self.names and args[0].op in ("=", "same", "iff"):
                return self.relation(args[0], r"\neq")
            return Math(rf"\neg {self.within(args[0], ATOM)}", TEST)
        if op in _RELATIONS:
            return self.relation(node, _RELATIONS[op])
        if op == "in":
            return Math(rf"{self.within(args[0], SUM)} \in {word_set(value)}", TEST)
        if op == "null?":
            return Math(rf"{self.within(args[0], SUM)} = \text{{null}}", TEST)
        if op == "if":
            return self.choice(node)
        if op == "table":
            return self.table(node)
        return self.function(node)

    def feature(self, name: str) -> Math:
        if name.startswith(":"):
            return Math(parameter_text(name[1:]), ATOM)
        test = self.derived.get(name)
        return Math(name_text(name), ATOM) if test is None else set_test(test)

    def function(self, node: Node) -> Math:
        op, args = node.op, node.args
        x = self.of(args[0]).text if args else ""
        if op == "/":
            return Math(rf"\frac{{{x}}}{{{self.of(args[1]).text}}}", PRODUCT)
        if op == "abs":
            return Math(rf"\left|{x}\right|", ATOM)
        if op == "sqrt":
            return Math(rf"\sqrt{{{x}}}", ATOM)
        if op == "exp":
            if r"\frac" in x or width(x) > 16:
                return Math(rf"\exp\left({x}\right)", ATOM)
            return Math(rf"\mathrm{{e}}^{{{x}}}", POWER)
        if op == "log":
            return Math(rf"\ln\left({x}\right)", ATOM)
        if op == "log1p":
            return Math(rf"\ln\left(1 + {self.within(args[0], SUM)}\right)", ATOM)
        if op == "pow":
            return Math(f"{self.within(args[0], ATOM)}^{{{self.of(args[1]).text}}}", POWER)
        if op in ("floor", "ceil"):
            return Math(rf"\left\l{op} {x} \right\r{op}", ATOM)
        links = self.links(node) if op in ("min", "max") else list(args)
        given = ", ".join(self.of(a).text for a in links)
        head = _FUNCTIONS[op]
        return Math(rf"{head}\left({given}\right)" if given else head, ATOM)

    def relation(self, node: Node, sign: str) -> Math:
        left, right = node.args
        if _fixed(left) and not _fixed(right):
            left, right, sign = right, left, _OPPOSITE.get(sign, sign)
        return Math(f"{self.within(left, SUM)} {sign} {self.within(right, SUM)}", TEST)

    def links(self, node: Node) -> list[Node]:
        """The arguments of a chain."""
        last = [node.args[1]]
        while node.args[0].index in self.flat:
            node = node.args[0]
            last.append(node.args[1])
        return [node.args[0], *reversed(last)]

    def choice(self, node: Node) -> Math:
        rows = [self.clause(node)]
        while node.args[2].index in self.flat:
            node = node.args[2]
            rows.append(self.clause(node))
        return cases([*rows, (self.of(node.args[2]).text, r"\text{otherwise}")])

    def clause(self, node: Node) -> tuple[str, str]:
        return self.of(node.args[1]).text, rf"\text{{if }} {self.of(node.args[0]).text}"

    def table(self, node: Node) -> Math:
        words, numbers, default = node.value
        by_number: dict[float, list[str]] = {}
        for word, number in zip(words, numbers, strict=True):
            by_number.setdefault(number, []).append(word)
        x = self.within(node.args[0], SUM)
        rows = [
            (number_text(number), rf"\text{{if }} {x} = {string_text(group[0])}")
            if len(group) == 1
            else (number_text(number), rf"\text{{if }} {x} \in {word_set(group)}")
            for number, group in by_number.items()
        ]
        return cases([*rows, (number_text(default), r"\text{otherwise}")])

    def sum(self, node: Node) -> Math:
        terms = self.terms(node)
        if len(terms) == 1:
            ((sign, term),) = terms
            return Math(f"-{term.within(PRODUCT)}", SUM) if sign < 0 else term
        (sign, first), *rest = terms
        text = f"-{first.within(PRODUCT)}" if sign < 0 else first.within(SUM)
        for sign, term in rest:
            text += f" {'-' if sign < 0 else '+'} {term.within(PRODUCT)}"
        return Math(text, SUM)

    def terms(self, node: Node) -> list[tuple[int, Math]]:
        """What is added, with signs; what has a name stays closed."""
        found: list[tuple[int, Math]] = []
        stack = [(node, 1)]
        while stack:
            term, sign = stack.pop()
            if term is not node and term.index in self.names:
                found.append((sign, self.of(term)))
            elif term.op in ("+", "-"):
                stack += [(term.args[1], sign if term.op == "+" else -sign), (term.args[0], sign)]
            elif term.op == "neg":
                stack.append((term.args[0], -sign))
            elif term.op == "*":
                own, product = self.product(term)
                found.append((sign * own, product))
            elif term.constant and isinstance(term.value, float) and term.value < 0:
                found.append((-sign, constant(-term.value)))
            else:
                found.append((sign, self.text[term.index]))
        return found

    def product(self, node: Node) -> tuple[int, Math]:
        """The sign and the rest: equal factors as powers, a factor such as 1/30 below a fraction bar."""
        sign = 1
        numbers: list[str] = []
        below: list[str] = []
        factors: dict[int, Node] = {}
        powers: Counter[int] = Counter()
        stack = [node]
        while stack:
            factor = stack.pop()
            value = factor.value
            if factor is not node and factor.index in self.names:
                pass
            elif factor.op == "*":
                stack += reversed(factor.args)
                continue
            elif factor.op == "neg":
                sign = -sign
                stack.append(factor.args[0])
                continue
            elif factor.constant and isinstance(value, float) and value == value:
                sign = -sign if value < 0 else sign
                by = divisor(abs(value))
                (numbers if by is None else below).append(number_text(abs(value) if by is None else by))
                continue
            factors[factor.index] = factor
            powers[factor.index] += 1
        count, times = len(numbers) + len(factors), r" \cdot "
        parts = []
        for index, factor in factors.items():
            math = self.of(factor)
            if powers[index] > 1:
                parts.append(f"{math.within(ATOM)}^{{{powers[index]}}}")
            else:
                parts.append(math.text if count == 1 else math.within(PRODUCT))
        text = times.join(numbers)
        if parts:
            between = times if parts[0][0].isdigit() else r" \, "
            text = between.join(filter(None, (text, times.join(parts))))
        if below:
            return sign, Math(rf"\frac{{{text or 1}}}{{{times.join(below)}}}", PRODUCT)
        if count == 1 and powers.total() == 1:
            return sign, self.of(next(iter(factors.values())))
        return sign, Math(text, PRODUCT if count > 1 else POWER)


def _fixed(node: Node) -> bool:
    """Whether a node is a constant or a parameter, which stand on the right of a comparison."""
    return node.constant or (node.op == "input" and str(node.value).startswith(":"))
