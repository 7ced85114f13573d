"""Random valid policies, drawn from the language's own tables: what the fuzzer and the random tests feed on.

``Grammar(dice).policy()`` gives a source and the slot that it fits. Every name of ``FORMS``, of ``ALIASES`` and of the
library is drawn; a form that the tables gain and the grammar does not know fails ``test_fuzz``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from memlab.kernel.language import Signature
from memlab.kernel.language.forms import FORMS
from memlab.kernel.language.primitives import AGGREGATES, PRIMITIVES
from memlab.kernel.language.reader import ALIASES
from memlab.kernel.language.signature import SET_TESTS
from memlab.kernel.language.texts import library
from tests.language.vocabulary import INPUTS, KINDS, NUMBERS, SLOTS, TAGS, WORDS

__all__ = ["INEXACT", "NOT_DRAWN", "Grammar", "Program"]

FIXED: dict[str, tuple[str, ...]] = {
    "days": ("num",),
    "weeks": ("num",),
    "hours": ("num",),
    "minutes": ("num",),
}
"""Forms that are no primitives and take a fixed list of types."""

INEXACT = frozenset({"exp", "log", "log1p", "tanh", "pow"})
NOT_DRAWN = frozenset(
    {"fn", "lambda", "defn", "defpolicy", "pack", "setting", "inherit", "inherited"}
)
"""Forms that stand at the top of a text or inside list functions, not in an expression."""


@dataclass(frozen=True)
class Program:
    """A policy's source and the slot that it was written for, by its name in ``SLOTS``."""

    source: str
    slot: str

    @property
    def signature(self) -> Signature:
        return SLOTS[self.slot]


class Grammar:
    """Draws programs. ``inexact`` allows functions that NumPy rounds otherwise; ``heads`` counts what was drawn."""

    def __init__(self, dice: random.Random, *, inexact: bool = True, depth: int = 4) -> None:
        self.dice, self.inexact, self.depth = dice, inexact, depth
        self.heads: dict[str, int] = {}
        self.params: dict[str, str] = {}
        self.own: dict[str, int] = {}
        self.slate = False
        self.sets = True
        self.rules = {type: self._rules(type) for type in ("num", "bool", "str", "word")}

    def policy(self, slot: str | None = None) -> Program:
        """Draw a whole policy, sometimes with helpers in front or in the Scheme spelling."""
        slot = slot or self.dice.choice(
            ("num", "num", "num", "bool", "bool", "str", "word", "record", "list")
        )
        self.params, self.own = {}, {}
        self.slate, self.sets = False, False
        front = [self._helper(i) for i in range(self.dice.choice((0, 0, 0, 1, 2)))]
        self.slate, self.sets = SLOTS[slot].aggregates, True
        names = [i.name for i in INPUTS]
        if slot == "list":
            names = ["acts", "accs", "flags", "tail-n"]
            body = self.picked(self.depth, {})
        elif slot == "record":
            body = self.update(self.depth, {})
        else:
            body = self.expression(slot, self.depth, {})
        arguments = " ".join(names)
        shape = self.dice.random()
        if shape < 0.6:
            text = f"(fn [{arguments}] {body})"
        elif shape < 0.8:
            text = f"(lambda ({arguments.replace('-', '_')}) {body})"
        elif shape < 0.9:
            text = (
                f'(defpolicy {SLOTS[slot].slot} [{arguments}]\n  "A docstring."\n  {body}) ; done'
            )
        else:
            text = f"(defpolicy {SLOTS[slot].slot} (λ ({arguments}) {body}))"
        return Program("\n".join([*front, text]), slot)

    # Expressions.

    def expression(self, type: str, depth: int, env: dict[str, str]) -> str:
        """Draw an expression of a type: num, bool, str, or word (one of a closed vocabulary)."""
        if depth <= 0 or self.dice.random() < 0.12:
            return self.leaf(type, env)
        return self.dice.choice(self.rules[type])(depth - 1, env)

    def leaf(self, type: str, env: dict[str, str]) -> str:
        dice = self.dice
        bound = [name for name, t in env.items() if t == type]
        if bound and dice.random() < 0.5:
            return dice.choice(bound)
        if dice.random() < 0.04:
            return dice.choice(("null", "nil", "None"))
        if type == "num":
            if dice.random() < 0.5:
                return self.number()
            return self.input("num", env)
        if type == "bool":
            return dice.choice(
                ("true", "false", "#t", "#false", "False", *[self.input("bool", env)] * 4)
            )
        if type == "word":
            return dice.choice(
                (
                    f'"{dice.choice(KINDS)}"',
                    "(quote " + dice.choice(KINDS) + ")",
                    self.input("word", env),
                )
            )
        return dice.choice(
            (f'"{dice.choice(WORDS)}"', "'b", "#[[fact]]", *[self.input("str", env)] * 3)
        )

    def input(self, type: str, env: dict[str, str]) -> str:
        if "" in env:  # inside a helper, which sees its arguments alone
            own = [n for n, t in env.items() if t == type and n]
            fallback = {"num": "1", "bool": "true", "str": '"a"', "word": '"fact"'}
            return self.dice.choice(own) if own else fallback[type]
        names = {
            "num": ("x", "y", "z", "pair/similarity", "pair/similarity"),
            "bool": ("p", "q"),
            "str": ("s", "s", "new/branch"),
            "word": ("kind", "old/kind"),
        }[type]
        free = [name for name in names if name not in env]
        return self.dice.choice(free or names[-1:])

    def number(self) -> str:
        dice = self.dice
        if dice.random() < 0.7:
            return dice.choice(NUMBERS)
        value = dice.choice((dice.gauss(0, 1), dice.gauss(0, 1) * 10.0 ** dice.randint(-300, 300)))
        return repr(value) if math.isfinite(value) else "1"

    # Rules: what gives a type, from the tables.

    def _rules(self, type: str) -> list[Callable[[int, dict[str, str]], str]]:
        rules: list[Callable[[int, dict[str, str]], str]] = []
        for head in FORMS:
            if head in NOT_DRAWN or head in ("update", "quote"):
                continue
            special = _SPECIAL.get(head)
            if special is not None:
                if type in special[0]:
                    rules += [self._special(special[1], type)] * special[2]
            elif head in SET_TESTS:
                if type == SET_TESTS[head].gives:
                    rules.append(self._set_test(head))
            elif head in AGGREGATES:
                if type == "num":
                    rules.append(self._aggregate(head))
            elif head in FIXED:
                if type == "num":
                    rules.append(self._fixed(head, FIXED[head]))
            elif (
                head in PRIMITIVES
                and type == PRIMITIVES[head].gives
                and (self.inexact or head not in INEXACT)
            ):
                rules += [self._primitive(head)] * (3 if head in "+-*/" else 1)
        if type == "num":
            rules += [self._library] * 4 + [self._own] * 2 + [self.write_param]
        return rules

    def say(self, head: str, *arguments: str) -> str:
        """Write a call, sometimes by an alias of its name."""
        self.heads[head] = self.heads.get(head, 0) + 1
        if self.dice.random() < 0.15:
            spelled = [alias for alias, name in ALIASES.items() if name == head]
            if spelled:
                head = self.dice.choice(spelled)
                self.heads[head] = self.heads.get(head, 0) + 1
        return f"({head} {' '.join(arguments)})" if arguments else f"({head})"

    def _special(self, rule: Callable[..., str], type: str) -> Callable[[int, dict[str, str]], str]:
        return lambda depth, env: rule(self, type, depth, env)

    def _primitive(self, head: str) -> Callable[[int, dict[str, str]], str]:
        takes: list[str] = list(PRIMITIVES[head].takes)
        variadic = head in ("+", "*", "-", "/", "min", "max", "and", "or")

        def rule(depth: int, env: dict[str, str]) -> str:
            types = [takes[0]] * self.dice.choice((1, 2, 2, 2, 3, 4)) if variadic else takes
            return self.say(head, *[self.expression(t, depth, env) for t in types])

        return rule

    def _fixed(self, head: str, takes: tuple[str, ...]) -> Callable[[int, dict[str, str]], str]:
        return lambda depth, env: self.say(head, *[self.expression(t, depth, env) for t in takes])

    def _aggregate(self, head: str) -> Callable[[int, dict[str, str]], str]:
        def rule(depth: int, env: dict[str, str]) -> str:
            inner = self.expression("num", depth, env)
            return self.say(head, inner) if self.slate else inner

        return rule

    def _set_test(self, head: str) -> Callable[[int, dict[str, str]], str]:
        def rule(depth: int, env: dict[str, str]) -> str:
            if not self.sets or "" in env:
                return self.leaf(SET_TESTS[head].gives, env)
            dice, tags = self.dice, self.dice.choice(("tags", "query-tags", "query_tags"))
            words = [f'"{dice.choice(TAGS)}"' for _ in range(dice.randint(1, 3))]
            if head == "has":
                return self.say(head, tags, words[0])
            if head == "size":
                return self.say(head, tags)
            if head.startswith("has"):
                return self.say(head, tags, f"[{' '.join(words)}]")
            return self.say(head, *dice.sample(["tags", "query-tags"], 2))

        return rule

    def _library(self, depth: int, env: dict[str, str]) -> str:
        """Draw a helper of the library; all of them take numbers and return one."""
        helper = self.dice.choice(list(library().values()))
        if not self.inexact or helper.name in self.own:
            return self.leaf("num", env)
        return self.say(
            helper.name, *[self.expression("num", depth - 1, env) for _ in helper.arguments]
        )

    def _own(self, depth: int, env: dict[str, str]) -> str:
        if not self.own:
            return self.leaf("num", env)
        name = self.dice.choice(list(self.own))
        return f"({name} {' '.join(self.expression('num', depth - 1, env) for _ in range(self.own[name]))})"

    def _helper(self, number: int) -> str:
        """Draw a ``defn``, which may call the ones before it."""
        names = self.dice.sample(["a", "b", "n", "m"], self.dice.randint(1, 3))
        body = self.expression("num", 2, {"": "", **dict.fromkeys(names, "num")})
        name = f"h{number}"
        self.own[name] = len(names)
        self.heads["defn"] = self.heads.get("defn", 0) + 1
        return f"(defn {name} [{' '.join(names)}] {body})"

    def write_param(self, depth: int, env: dict[str, str]) -> str:
        name = self.dice.choice(("weight", "near", "half_life"))
        if name not in self.params:
            bounds = self.dice.choice(("", " :low 0 :high 10", " :low -1", " :high 1e6"))
            self.params[name] = self.say(
                "param", f":{name}", self.dice.choice(("0", "0.5", "2", "1e-3")) + bounds
            )
        return self.params[name]

    def write_let(self, type: str, depth: int, env: dict[str, str]) -> str:
        dice, scope, pairs = self.dice, dict(env), []
        for _ in range(dice.randint(1, 3)):
            kind = dice.choice(("num", "num", "bool", "str", type))
            name = dice.choice(("a", "b", "c", "x", "p", "s", "a-b", "size", "recency"))
            if name in FORMS:
                name += "-1"
            pairs.append((name, self.expression(kind, depth, scope)))
            scope.pop(name, None)
            # an argument or a literal null may change what a name means; only what is certain is used
            scope[name] = kind if pairs[-1][1] not in ("null", "nil", "None") else "?"
        # a bound name hides the input of that name, whose type may differ
        hidden = {"x": "num", "p": "bool", "s": "str"}
        bad = [n for n, t in scope.items() if n in hidden and t != hidden[n] and t != "?"]
        if bad or any(scope.get(n) == "?" for n in hidden):
            return self.expression(type, depth, env)
        body = self.expression(type, depth, scope)
        style = dice.random()
        if style < 0.5:
            return self.say("let", f"[{' '.join(f'{n} {v}' for n, v in pairs)}]", body)
        if style < 0.8:
            return self.say("let", f"({' '.join(f'({n} {v})' for n, v in pairs)})", body)
        return self.say("let", f"({' '.join(f'[{n} {v}]' for n, v in pairs)})", body)

    def write_if(self, type: str, depth: int, env: dict[str, str]) -> str:
        branch = self._branch(type, depth, env)
        return self.say("if", self.expression("bool", depth, env), branch(), branch())

    def write_when(self, type: str, depth: int, env: dict[str, str]) -> str:
        return self.say(
            "when", self.expression("bool", depth, env), self._branch(type, depth, env)()
        )

    def _branch(self, type: str, depth: int, env: dict[str, str]) -> Callable[[], str]:
        return lambda: (
            self.update(depth, env) if type == "update" else self.expression(type, depth, env)
        )

    def write_cond(self, type: str, depth: int, env: dict[str, str]) -> str:
        branch = self._branch(type, depth, env)
        pairs = [
            (self.expression("bool", depth, env), branch()) for _ in range(self.dice.randint(1, 3))
        ]
        pairs.append((self.dice.choice(("else", "else", "True", "true")), branch()))
        if self.dice.random() < 0.5:
            return self.say("cond", *[part for pair in pairs for part in pair])
        left, right = self.dice.choice(("()", "[]"))
        return self.say("cond", *[f"{left}{test} {value}{right}" for test, value in pairs])

    def write_case(self, type: str, depth: int, env: dict[str, str]) -> str:
        dice, branch = self.dice, self._branch(type, depth, env)
        subject, words = self._subject(depth, env)
        keys = [
            dice.sample(words, min(len(words), dice.randint(1, 3)))
            for _ in range(dice.randint(1, 3))
        ]
        values = [branch() for _ in keys]
        if type == "num" and dice.random() < 0.4:
            values = [self.number() for _ in keys]
        last = self.number() if type == "num" and dice.random() < 0.4 else branch()
        if dice.random() < 0.5:
            texts = [k[0] if len(k) == 1 else f"[{' '.join(k)}]" for k in keys]
            return self.say(
                "case",
                subject,
                *[p for pair in zip(texts, values, strict=True) for p in pair],
                "else",
                last,
            )
        clauses = [f"(({' '.join(k)}) {v})" for k, v in zip(keys, values, strict=True)]
        return self.say("case", subject, *clauses, f"(else {last})")

    def _subject(self, depth: int, env: dict[str, str]) -> tuple[str, list[str]]:
        """Draw a subject for ``case`` and ``in``, and literals that it may equal."""
        kind = self.dice.choice(("num", "str", "word"))
        words = {
            "num": list(NUMBERS),
            "str": [f'"{w}"' for w in WORDS],
            "word": [f'"{w}"' for w in KINDS],
        }[kind]
        if kind == "word" and "" in env:
            kind, words = "num", list(NUMBERS)
        subject = self.input("word", env) if kind == "word" else self.expression(kind, depth, env)
        if subject in ("null", "nil", "None"):
            subject = "7" if kind == "num" else '"a"'
        return subject, words

    def write_in(self, type: str, depth: int, env: dict[str, str]) -> str:
        subject, words = self._subject(depth, env)
        keys = self.dice.sample(words, self.dice.randint(1, min(3, len(words))))
        head = self.dice.choice(("in", "not-in", "one-of"))
        if head == "one-of":
            return self.say(head, subject, *keys)
        return self.say(head, subject, f"[{' '.join(keys)}]")

    def write_null(self, type: str, depth: int, env: dict[str, str]) -> str:
        return self.say(
            "null?", self.expression(self.dice.choice(("num", "bool", "str")), depth, env)
        )

    def write_if_null(self, type: str, depth: int, env: dict[str, str]) -> str:
        return self.say(
            "if-null",
            *[self.expression(type, depth, env) for _ in range(self.dice.choice((2, 2, 3)))],
        )

    def write_compare(self, type: str, depth: int, env: dict[str, str]) -> str:
        head = self.dice.choice(("=", "!=", "<", "<=", ">", ">="))
        kind = self.dice.choice(("num", "num", "bool", "str")) if head in ("=", "!=") else "num"
        count = 2 if head == "!=" else self.dice.choice((2, 2, 2, 3))
        return self.say(head, *[self.expression(kind, depth, env) for _ in range(count)])

    # Lists.

    def picked(self, depth: int, env: dict[str, str]) -> str:
        """Draw the position of one item, or -1."""
        shape = self.dice.random()
        if depth > 1 and shape < 0.6:
            empty = self.say("empty?", self.positions(depth - 2, env))
            test = self.dice.choice(
                (f"(> tail-n {self.dice.randint(0, 3)})", empty, f"(not {empty})")
            )
            return self.say("if", test, self.picked(depth - 1, env), self.picked(depth - 1, env))
        if depth > 1 and shape < 0.75:
            return self.say("let", f"((kept {self.positions(depth - 1, env)}))", "(first kept)")
        return "-1" if shape > 0.9 else self.say("first", self.positions(depth, env))

    def positions(self, depth: int, env: dict[str, str]) -> str:
        """Draw positions of the slate that meet some tests."""
        every = self.say(
            "range",
            *self.dice.choice(((), ("0",))),
            self.say("length", self.dice.choice(("acts", "accs"))),
        )
        if depth <= 0:
            return every
        value = self.say("nth", self.dice.choice(("acts", "accs")), "i")
        test = self.dice.choice(
            (f"(< {value} {self.dice.choice(NUMBERS)})", "(nth flags i)", f"(null? {value})")
        )
        return self.say(
            "filter",
            f"({self.dice.choice(('fn', 'lambda', 'λ'))} [i] {test})",
            self.positions(depth - 1, env),
        )

    # Records.

    def update(self, depth: int, env: dict[str, str]) -> str:
        """Draw an ``(update ...)`` under choices and bindings."""
        shape = self.dice.random()
        if depth > 1 and shape < 0.5:
            rule = self.dice.choice(
                (Grammar.write_if, Grammar.write_when, Grammar.write_cond, Grammar.write_case)
            )
            return rule(self, "update", depth - 1, env)
        if depth > 1 and shape < 0.6:
            name = self.dice.choice(("a", "b"))
            value = self.expression("num", depth - 2, env)
            scope = {**env, name: "num"} if value not in ("null", "nil", "None") else env
            return self.say("let", f"[{name} {value}]", self.update(depth - 1, scope))
        fields = self.dice.sample(["x", "y", "p", "kind"], self.dice.randint(0, 3))
        types = {"x": "num", "y": "num", "p": "bool", "kind": "word"}
        return self.say(
            "update", *[f":{f} {self.expression(types[f], depth - 1, env)}" for f in fields]
        )


_EVERY = ("num", "bool", "str", "word")
_SPECIAL: dict[str, tuple[tuple[str, ...], Callable[..., str], int]] = {
    "let": (_EVERY, Grammar.write_let, 3),
    "if": (_EVERY, Grammar.write_if, 3),
    "when": (_EVERY, Grammar.write_when, 1),
    "cond": (_EVERY, Grammar.write_cond, 2),
    "case": (_EVERY, Grammar.write_case, 2),
    "if-null": (_EVERY, Grammar.write_if_null, 1),
    "null?": (("bool",), Grammar.write_null, 1),
    "in": (("bool",), Grammar.write_in, 2),
    "not-in": ((), Grammar.write_in, 0),
    "one-of": ((), Grammar.write_in, 0),
    "param": ((), Grammar.write_param, 0),
    "<": (("bool",), Grammar.write_compare, 4),
    **dict.fromkeys(("=", "!=", "<=", ">", ">="), ((), Grammar.write_compare, 0)),
}
