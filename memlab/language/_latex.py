r"""A policy as mathematics: LaTeX that MathJax, KaTeX and LaTeX itself set alike.

It is written from the graph, so helpers are inlined; a parameter is :math:`\theta_{damping}`, with its value below.
What is used more than once gets a name too, where that is shorter than to repeat it, and so does every choice within a
larger expression; so the text stays linear in the graph. Names and strings come from untrusted files: they are set
character by character, and none can leave its group, start a command, end the mathematics or begin a tag.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from memlab.language._dag import Node, Value, reachable
from memlab.language._derived import Derived
from memlab.language._params import Param
from memlab.language._source import chain, clauses

__all__ = ["latex", "name_text", "string_text"]

_WIDE = 72
"""Characters of a line: about the text width of a page."""
_REPEAT = 20
"""A shared expression is named when repeating it would cost more characters than this."""
_LONGEST = 60
"""Characters of a name or a string before it is cut."""

OR, AND, TEST, SUM, PRODUCT, POWER, ATOM = range(7)
"""How tightly LaTeX binds, loosest first."""

_FUNCTIONS = {
    "abs": r"\left|{}\right|",
    "sqrt": r"\sqrt{{{}}}",
    "log": r"\ln\left({}\right)",
    "log1p": r"\ln\left(1 + {}\right)",
    "floor": r"\left\lfloor {} \right\rfloor",
    "ceil": r"\left\lceil {} \right\rceil",
    "exp": r"\exp\left({}\right)",
    "tanh": r"\tanh\left({}\right)",
    "sign": r"\operatorname{{sgn}}\left({}\right)",
    "clamp": r"\operatorname{{clamp}}\left({}, {}, {}\right)",
    "if-null": r"\operatorname{{ifnull}}\left({}, {}\right)",
    "slate-min": r"\min_{{S}}\left({}\right)",
    "slate-max": r"\max_{{S}}\left({}\right)",
    "slate-mean": r"\operatorname{{mean}}_{{S}}\left({}\right)",
    "slate-rank": r"\operatorname{{rank}}_{{S}}\left({}\right)",
    "min-max": r"\operatorname{{minmax}}_{{S}}\left({}\right)",
}
_CHAINS = {"and": 0, "or": 0, "min": 0, "max": 0, "+": 0, "-": 0, "*": 0, "if": 2}
"""Where an operation of the same kind continues it: ``(and (and a b) c)``, and the ``else`` of an ``if``."""
_LOGIC = {"and": (AND, r"\wedge"), "or": (OR, r"\vee")}
_RELATIONS = {"=": "=", "same": "=", "iff": "=", "<": "<", "<=": r"\leq"}
_OPPOSITE = {"<": ">", r"\leq": r"\geq"}


class Math(NamedTuple):
    """LaTeX and how tightly it binds."""

    text: str
    binds: int = ATOM

    def within(self, least: int) -> str:
        """The text, in parentheses where it binds less than its surroundings."""
        return self.text if self.binds >= least else rf"\left({self.text}\right)"


def latex(
    name: str, root: Node, derived: Mapping[str, Derived], params: Mapping[str, Param], *, field: bool = False
) -> str:
    """The graph of a policy as LaTeX; see ``Policy.latex``. ``field`` marks what one field of a record becomes."""
    writer = _Writer(root, derived)
    if root.op == "record":
        equations = [(f"{name_text(key)}'", writer.lines(a)) for key, a in zip(root.value, root.args, strict=True)]
    else:
        equations = [(f"{name_text(name)}'" if field else name_text(name), writer.lines(root))]
    read = {str(node.value) for node in reachable(root) if node.op == "input"}
    where = [(writer.names[node.index], writer.lines(node)) for node in writer.named()]
    where += [(_theta(p.name), [_number(p.value)]) for p in params.values() if f":{p.name}" in read]
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


class _Writer:
    """``text`` of each node, arguments first; ``names`` are those of the nodes that are written once, below."""

    def __init__(self, root: Node, derived: Mapping[str, Derived]) -> None:
        self.derived, self.nodes = derived, reachable(root)
        self.names: dict[int, str] = {}
        self.text: dict[int, Math] = {}
        tops = {a.index for a in root.args} if root.op == "record" else {root.index}
        uses = Counter(a.index for node in self.nodes for a in node.args)
        self.flat = {
            a.index
            for node in self.nodes
            for place, a in enumerate(node.args)
            if a.op == node.op and uses[a.index] == 1 and _CHAINS.get(node.op) == place
        }
        nodes = [node for node in self.nodes if node.op != "record"]
        for node in nodes:
            self.text[node.index] = math = self.write(node)
            choice = node.op in ("if", "table") and node.index not in self.flat | tops
            if choice or (node.args and (uses[node.index] - 1) * _width(math.text) > _REPEAT):
                self.names[node.index] = ""
        for place, node in enumerate(self.named(), 1):
            self.names[node.index] = f"u_{{{place}}}"
        for node in nodes:
            self.text[node.index] = self.write(node)

    def named(self) -> list[Node]:
        """What has a name, in the order in which a reader meets it."""
        found: dict[int, Node] = {}
        stack = [self.nodes[-1]]
        while stack:
            node = stack.pop()
            if node.index not in found:
                found[node.index] = node
                stack.extend(reversed(node.args))
        return [node for node in found.values() if node.index in self.names]

    def of(self, node: Node) -> Math:
        """A node where it is used: its name, if it has one."""
        name = self.names.get(node.index)
        return self.text[node.index] if name is None else Math(name or "u")

    def within(self, node: Node, least: int) -> str:
        return self.of(node).within(least)

    def lines(self, node: Node) -> list[str]:
        """A right-hand side; what is long breaks before its signs."""
        if _width(self.text[node.index].text) <= _WIDE or node.op not in ("+", "-", "and", "or"):
            return [self.text[node.index].text]
        lines: list[str] = []
        for part in self.parts(node):
            if lines and _width(lines[-1]) + _width(part) <= _WIDE:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
        return lines

    def links(self, node: Node) -> list[Node]:
        """The arguments of a chain."""
        return chain(node, lambda below: below.index in self.flat and below.index not in self.names)

    def parts(self, node: Node) -> list[str]:
        """The links of a chain, each but the first after its sign."""
        first, *rest = self.links(node)
        if node.op in _LOGIC:
            level, sign = _LOGIC[node.op]
            return [self.within(first, level), *[f"{sign} {self.within(link, level)}" for link in rest]]
        texts = []
        for link in rest:
            text, minus = self.within(link, SUM if node.op == "+" else PRODUCT), node.op == "-"
            if text.startswith("-"):
                text, minus = text[1:], not minus
            texts.append(f"{'-' if minus else '+'} {text}")
        return [self.within(first, SUM), *texts]

    def write(self, node: Node) -> Math:
        """A node in terms of what its arguments are called."""
        op, args, value = node.op, node.args, node.value
        if op == "const":
            return _constant(value)
        if op == "input":
            return self.feature(str(value))
        if op in ("+", "-", "and", "or"):
            return Math(" ".join(self.parts(node)), _LOGIC[op][0] if op in _LOGIC else SUM)
        if op == "neg":
            return Math(f"-{self.within(args[0], PRODUCT)}", SUM)
        if op == "*":
            return self.product(node)
        if op == "/":
            return Math(rf"\frac{{{self.of(args[0]).text}}}{{{self.of(args[1]).text}}}", PRODUCT)
        if op == "pow":
            return Math(f"{self.within(args[0], ATOM)}^{{{self.of(args[1]).text}}}", POWER)
        if op == "not":
            if args[0].index not in self.names and args[0].op in ("=", "same", "iff"):
                return self.relation(args[0], r"\neq")
            return Math(rf"\neg {self.within(args[0], ATOM)}", TEST)
        if op in _RELATIONS:
            return self.relation(node, _RELATIONS[op])
        if op == "in":
            return Math(rf"{self.within(args[0], SUM)} \in {_words(value)}", TEST)
        if op == "null?":
            return Math(rf"{self.within(args[0], SUM)} = \text{{null}}", TEST)
        if op in ("if", "table"):
            return self.choice(node)
        if op in ("min", "max"):
            return Math(rf"\{op}\left({', '.join(self.of(a).text for a in self.links(node))}\right)")
        given = [self.of(a).text for a in args]
        if op == "exp" and r"\frac" not in given[0] and _width(given[0]) <= 16:
            return Math(rf"\mathrm{{e}}^{{{given[0]}}}", POWER)
        if op == "interpreted":
            return Math(rf"\operatorname{{program}}_{{S}}\left({', '.join(given)}\right)")
        return Math(_FUNCTIONS[op].format(*given))

    def feature(self, name: str) -> Math:
        if name.startswith(":"):
            return Math(_theta(name[1:]))
        test = self.derived.get(name)
        return Math(name_text(name)) if test is None else _set_test(test)

    def relation(self, node: Node, sign: str) -> Math:
        """A comparison, its constant or parameter on the right."""
        left, right = node.args
        if _fixed(left) and not _fixed(right):
            left, right, sign = right, left, _OPPOSITE.get(sign, sign)
        return Math(f"{self.within(left, SUM)} {sign} {self.within(right, SUM)}", TEST)

    def choice(self, node: Node) -> Math:
        """``if`` and what continues it, or a table, as cases."""
        rows: list[str] = []
        if node.op == "table":
            words, numbers, default = node.value
            x = self.within(node.args[0], SUM)
            for number in dict.fromkeys(numbers):
                group = [word for word, found in zip(words, numbers, strict=True) if found == number]
                test = f"= {string_text(group[0])}" if len(group) == 1 else rf"\in {_words(group)}"
                rows.append(rf"{_number(number)} & \text{{if }} {x} {test}")
            last = _number(default)
        else:
            pairs, otherwise = clauses(node, lambda below: below.index in self.flat)
            rows = [rf"{self.of(then).text} & \text{{if }} {self.of(test).text}" for test, then in pairs]
            last = self.of(otherwise).text
        body = r" \\ ".join([*rows, rf"{last} & \text{{otherwise}}"])
        return Math(rf"\begin{{cases}} {body} \end{{cases}}")

    def product(self, node: Node) -> Math:
        """Numbers first, equal factors as powers."""
        links = self.links(node)
        inside = [self.links(a) if a.op == "*" and a.index not in self.names else [a] for a in links]
        factors = [a for group in inside for a in group]
        numbers = [_number(abs(a.value)) for a in factors if a.constant and a.value == a.value]
        minus = sum(a.constant and a.value < 0 for a in factors) % 2
        powers = Counter(a.index for a in factors if not (a.constant and a.value == a.value))
        known = {a.index: a for a in factors}
        others = [
            f"{self.within(known[i], ATOM)}^{{{n}}}" if n > 1 else self.within(known[i], PRODUCT)
            for i, n in powers.items()
        ]
        times = r" \cdot "
        between = times if others and (others[0][0].isdigit() or not numbers) else r" \, "
        text = between.join(filter(None, (times.join(numbers), times.join(others))))
        return Math(f"-{text}", SUM) if minus else Math(text, PRODUCT)


def _fixed(node: Node) -> bool:
    """Whether a node is a constant or a parameter, which are written on the right of a comparison."""
    return node.constant or (node.op == "input" and str(node.value).startswith(":"))


# Numbers, names and strings.


def _number(value: float) -> str:
    """Six digits, or the constant or the simple fraction that it is to the last bit."""
    if value != value:
        return r"\text{NaN}"
    if value < 0:
        return f"-{_number(-value)}"
    if math.isinf(value):
        return r"\infty"
    for n in (2, 10):
        if value == math.log(n):
            return rf"\ln {n}"
    if value.is_integer() and value < 1e7:
        return str(int(value))
    text = repr(value)
    if len(text) > 10:
        simple = Fraction(value).limit_denominator(100)
        if simple and float(simple) == value:
            return rf"\frac{{{simple.numerator}}}{{{simple.denominator}}}"
        text = f"{value:.6g}"
    digits, _, exponent = text.partition("e")
    return rf"{digits} \times 10^{{{int(exponent)}}}" if exponent else text


def _constant(value: Value) -> Math:
    if isinstance(value, str):
        return Math(string_text(value))
    if isinstance(value, float):
        return Math(_number(value), SUM if value < 0 else ATOM)
    return Math(rf"\text{{{'null' if value is None else str(value).lower()}}}")


def _theta(name: str) -> str:
    return rf"\theta_{{{name_text(name)}}}"


def _words(words: Iterable[str]) -> str:
    return rf"\left\{{{', '.join(string_text(word) for word in words)}\right\}}"


def _set_test(test: Derived) -> Math:
    first, *others = [name_text(name) for name in test.sets]
    if test.op == "has":
        return Math(rf"{string_text(test.words[0])} \in {first}", TEST)
    if test.op == "has-all":
        return Math(rf"{_words(test.words)} \subseteq {first}", TEST)
    if test.op == "has-any":
        return Math(rf"{first} \cap {_words(test.words)} \neq \varnothing", TEST)
    between = r" \cap ".join([first, *others])
    shared = rf"\left|{between}\right|"
    if test.op in ("size", "overlap"):
        return Math(shared)
    return Math(rf"\frac{{{shared}}}{{\left|{first} \cup {others[0]}\right|}}", PRODUCT)


_SPECIAL = {
    "\\": r"\backslash ",
    **{c: rf"\{c}" for c in "{}$&#%_"},
    "^": r"{\wedge}",
    "~": r"{\sim}",
    "<": r"{<}",
    ">": r"{>}",
    "`": r"\text{‘}",
}
"""Commands that mean the same in MathJax, KaTeX and LaTeX; in braces, so that no letter joins a command and no ``<``
begins a tag.
"""
_PLAIN = re.compile(r"[A-Za-z0-9/?!:*+.=]")


def name_text(name: str) -> str:
    """A name, upright."""
    letters = (c if _PLAIN.match(c) else _SPECIAL.get(c) or rf"\text{{{_printable(c)}}}" for c in _clipped(name))
    return rf"\mathrm{{{''.join(letters)}}}"


def string_text(word: str) -> str:
    """A string in quotation marks: plain runs as text, every special character as a command between them."""
    pieces = [f"}}{_SPECIAL[c]}\\text{{" if c in _SPECIAL else _printable(c) for c in _clipped(word)]
    return rf"\text{{“{''.join(pieces)}”}}".replace(r"\text{}", "")


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _printable(c: str) -> str:
    """A character, or the number of one that is not seen or changes how others are read."""
    category = unicodedata.category(c)
    return f"[U+{ord(c):04X}]" if category[0] == "C" or category in ("Zl", "Zp") else c


_UNSEEN = re.compile(r"\\(?:(?:begin|end)\{cases\}|(?:mathrm|text|left|right|operatorname|frac)\b|,)|[{}&\s^_]")


def _width(text: str) -> int:
    """About how many characters a formula is wide."""
    return len(re.sub(r"\\[a-zA-Z]+", "xx", _UNSEEN.sub("", re.sub(r"\\[{}$&#%_ ]", "x", text))))
