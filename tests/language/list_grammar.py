"""Random bodies of list policies, which pick an index of the slate."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.language.vocabulary import NUMBERS

__all__ = ["ListGrammar"]


class ListGrammar:
    """Draws bodies: what ``index`` gives lifts to columns; ``picked`` needs a loop. ``say`` writes a call."""

    def __init__(self, dice: random.Random, say: Callable[..., str]) -> None:
        self.dice, self.say = dice, say

    def index(self, depth: int) -> str:
        dice, shape = self.dice, self.dice.random()
        if depth > 1 and shape < 0.35:
            tests = (f"(> tail-n {dice.randint(0, 3)})", f"(empty? {self.listing(2)})", "(> (nth accs 0) 1)")
            return self.say("if", dice.choice(tests), self.index(depth - 1), dice.choice(("-1", self.index(depth - 1))))
        if depth > 1 and shape < 0.55:
            inner = f"(if (not (empty? kept)) (first kept) {self.index(depth - 2)})"
            return self.say("let", f"((kept {self.listing(2)}))", inner)
        shapes = (
            f"(first {self.listing(2)})",
            f"(- (length {self.listing(2)}) 1)",
            f"(nth acts {dice.randint(0, 3)})",
            f"(nth {dice.choice(('acts', 'accs'))} (first {self.listing(1)}))",
            str(dice.randint(-1, 3)),
            "(- tail_n 1)",
            "(- (length acts) 1)",
        )
        return dice.choice(shapes)

    def listing(self, depth: int) -> str:
        dice = self.dice
        if depth == 0 or dice.random() < 0.3:
            return dice.choice(("(range 0 (length acts))", "(range tail-n)", "(range 1 (len accs))", "acts", "accs"))
        inner = self.listing(depth - 1)
        if dice.random() < 0.7:
            tests = (f"(> i {dice.choice(NUMBERS)})", "(< (nth accs i) 5)", "(< i (nth acts i))", "(null? i)")
            return self.say("filter", f"(lambda (i) {dice.choice(tests)})", inner)
        return self.say("map", f"(fn [i] {dice.choice(('(+ i 1)', '(- i)', '(nth accs i)', '(* 2 i)'))})", inner)

    def picked(self, depth: int) -> str:
        """A number, by any function over lists."""
        dice = self.dice
        if depth <= 0:
            return dice.choice(("0", "1", "-1", "tail-n", "(first accs)", "(choice (range tail-n))"))
        items, other = self.items(depth - 1), self.picked(depth - 1)
        shape = dice.randrange(12)
        if shape == 0:
            head = dice.choice(("argmax", "argmin", "sum"))
            return self.say(head, *dice.choice(([items], [self.key(), items])))
        if shape == 1:
            return self.say("choice", items)
        if shape == 2:
            return self.say("if", self.odds(), other, self.picked(depth - 1))
        if shape == 3:
            function = dice.choice(
                ("+", "max", "(lambda (a b) (+ a b))", "(fn [a b] (if (> b a) b a))", "(fn [a b] b)")
            )
            return self.say("reduce", function, *dice.choice(([items], [other, items])))
        if shape == 4:
            return self.say(dice.choice(("first", "length")), items)
        if shape == 5:
            return self.say("nth", items, other)
        if shape == 6:
            pair = (f"((c {items}))", f"(+ (first c) (length c) {other})")
            return self.say("let", *dice.choice((pair, (f"[c {other}]", f"(- c {self.picked(depth - 2)})"))))
        if shape == 7:
            return self.say("let", f"[f {self.key()}]", f"(f {other})")
        if shape == 8:
            return self.say(dice.choice(("+", "-", "*", "min", "max", "/")), other, self.picked(depth - 2))
        if shape == 9:
            return self.say("cond", self.odds(), other, "else", self.picked(depth - 2))
        if shape == 10:
            return self.say("if-null", self.say("first", items), other)
        return self.say("case", other, "0", "1", "[1 2]", self.picked(depth - 2), "else", "0")

    def odds(self) -> str:
        """Something true or false."""
        dice = self.dice
        head = dice.choice(("any?", "all?", "flip", "empty?", "in", "null?"))
        if head == "flip":
            return self.say(head, dice.choice(("0.5", "0.1", "1", "(/ 1 tail-n)")))
        if head in ("any?", "all?"):
            return self.say(head, "(lambda (i) (< i 1))", self.items(1))
        if head == "in":
            return self.say(head, self.picked(1), "[0 1]")
        return self.say(head, self.items(1) if head == "empty?" else self.picked(1))

    def key(self) -> str:
        return self.dice.choice(("(lambda (i) (nth accs i))", "(fn [i] (- i))", "(lambda (i) (* i 2))", "abs", "sign"))

    def items(self, depth: int) -> str:
        """A list of numbers."""
        dice = self.dice
        if depth <= 0:
            return dice.choice(("acts", "accs", "(range tail-n)", "[1 2 0.5]", "(list 3)", "[]", "(range 0 3)"))
        inner = self.items(depth - 1)
        head = dice.choice(("map", "filter", "sort", "reverse", "rest", "take", "append", "cons", "list"))
        if head == "map":
            return self.say(head, self.key(), inner)
        if head == "filter":
            return self.say(head, f"(lambda (i) (< i {dice.choice(NUMBERS)}))", inner)
        if head == "sort":
            return self.say(head, *dice.choice(([inner], [self.key(), inner])))
        if head == "take":
            return self.say(head, inner, str(dice.randint(0, 3)))
        if head == "append":
            return self.say(head, inner, self.items(depth - 1))
        if head == "cons":
            return self.say(head, self.picked(1), inner)
        return self.say(head, *([self.picked(1), self.picked(0)] if head == "list" else [inner]))
