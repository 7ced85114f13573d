"""Handlers of the built-in forms, by name: binding, choice, membership, units, parameters and aggregates.

Both traditions are accepted: Hy's brackets and pairs, Scheme's parentheses and clauses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from memlab.errors import PolicyNameError, did_you_mean
from memlab.kernel.language.checker import Checker, Env, Handler, kind_of
from memlab.kernel.language.graph import Node
from memlab.kernel.language.macros import is_case_clause
from memlab.kernel.language.primitives import PRIMITIVES
from memlab.kernel.language.reader import (
    AGGREGATE_FORMS,
    ALIASES,
    COMPARISONS,
    DIRECT,
    FOLDS,
    FUNCTION_HEADS,
    LITERALS,
    UNITS,
    Form,
    definition,
    flat_pairs,
)
from memlab.kernel.language.signature import SET_TESTS, Derived, SetName, Signature, declared_param

# Spellings of the last test of cond and case in Hy and Scheme.
ELSE = ("else", "True", "true")


def bindings(checker: Checker, form: Form) -> list[tuple[Form, Form]]:
    """Return the name and value pairs of a ``let`` in any accepted syntax.

    The accepted forms are ``[a 1 b 2]``, ``((a 1) (b 2))`` and ``([a 1] [b 2])``.
    """
    if len(form.items) < 2 or form.items[1].kind not in ("list", "call"):
        raise checker.error(
            f"{form.head} needs bindings: ({form.head} [name value ...] body).", form
        )
    # The checks run from left to right and point at the first malformed binding.
    items = form.items[1].items
    if items and items[0].kind in ("list", "call"):
        for pair in items:
            if pair.kind not in ("list", "call") or len(pair.items) != 2:
                raise checker.error("A binding must be a name and a value: [name value].", pair)
    items = flat_pairs(items)
    if len(items) % 2:
        raise checker.error("The last name of these bindings has no value.", items[-1])
    for name in items[::2]:
        if name.kind != "symbol":
            raise checker.error("A binding must begin with a name: [name value].", name)
        if ALIASES.get(name.text, name.text) in checker.forms or name.text in ("else", *LITERALS):
            raise checker.error(
                f"{name.text} is a form of the dialect and cannot be bound. Choose another name for the variable.",
                name,
            )
    if len(form.items) != 3:
        raise checker.error(
            f"{form.head} must have one expression as its body, but {len(form.items) - 2} are given.",
            form,
        )
    return list(zip(items[::2], items[1::2], strict=True))


def _let(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(let [name value ...] body)``: bind names in their order, and return the node of the body."""
    scope = dict(env)
    for name, value in bindings(checker, form):
        bound = scope.get(value.text) if value.kind == "symbol" else None
        scope[name.text] = bound if isinstance(bound, SetName) else checker.check(value, scope)
    return checker.check(form.items[2], scope, tail=tail)


def _branches(
    checker: Checker, tests: list[Node], values: list[Form], env: Env, tail: bool, what: str
) -> Node:
    """Build nested ``if`` nodes from tests and values.

    The last value has no test.
    """
    nodes = checker.unify(
        [checker.check(v, env, tail=tail) for v in values], values, f"The branches of {what}"
    )
    return _nested(checker, tests, nodes)


def _nested(checker: Checker, tests: list[Node], nodes: list[Node]) -> Node:
    """Build nested ``if`` nodes from checked tests and values."""
    result = nodes[-1]
    for test, node in zip(reversed(tests), reversed(nodes[:-1]), strict=True):
        result = checker.choose(test, node, result)
    return result


def _if(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(if test then otherwise)`` and return its node."""
    test, then, otherwise = checker.arity(form, 3, 3)
    condition = checker.want(test, env, "bool", "if tests")
    return _branches(checker, [condition], [then, otherwise], env, tail, "if")


def _when(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(when test then)`` and return its node.

    If the test is not true, the value is null, or an update of no field.
    """
    test, then = checker.arity(form, 2, 2)
    condition = checker.want(test, env, "bool", "when tests")
    node = checker.check(then, env, tail=tail)
    if node.type == "record":
        return checker.choose(condition, node, checker.dag.record({}))
    return checker.dag.make("if", condition, node, checker.dag.constant(None, node.type))


def is_clause(checker: Checker, item: Form, env: Mapping[str, object]) -> bool:
    """Return True if a form is a clause ``(test value)`` and not a call."""
    if item.kind == "list":
        return len(item.items) == 2
    if item.kind != "call" or len(item.items) != 2:
        return False
    first = item.items[0]
    return (
        first.kind != "symbol"
        or first.text in env
        or first.text in ELSE
        or not checker.is_function(first.text)
    )


def paired(
    checker: Checker, form: Form, items: tuple[Form, ...], clauses: bool
) -> tuple[list[tuple[Form, Form]], Form]:
    """Return pairs of test and value, and the value of ``else``."""
    # Scheme writes clauses, Hy writes tests and values in turn.
    if clauses:
        for item in items:
            if item.kind not in ("list", "call") or len(item.items) != 2:
                raise checker.error(f"A clause of {form.head} must be a test and a value.", item)
        pairs = [(item.items[0], item.items[1]) for item in items]
    else:
        if len(items) % 2:
            raise checker.error(f"The last test of {form.head} has no value.", items[-1])
        pairs = list(zip(items[::2], items[1::2], strict=True))
    for test, _ in pairs[:-1]:
        if test.kind == "symbol" and test.text == "else":
            raise checker.error(f"else must be the last test of {form.head}.", test)
    if not pairs or pairs[-1][0].kind != "symbol" or pairs[-1][0].text not in ELSE:
        raise checker.error(
            f"{form.head} has no else, but every policy needs a value: end it with else and a value.",
            form,
        )
    return pairs[:-1], pairs[-1][1]


def _cond(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(cond test value ... else value)`` and return its node."""
    items = checker.arity(form, 1)
    pairs, otherwise = paired(
        checker, form, items, all(is_clause(checker, item, env) for item in items)
    )
    tests = [checker.want(test, env, "bool", "cond tests") for test, _ in pairs]
    return _branches(checker, tests, [*(value for _, value in pairs), otherwise], env, tail, "cond")


def unquoted(form: Form) -> Form:
    """Return a quoted symbol as a string and a quoted list as a list.

    Any other form is returned unchanged.
    """
    if form.head != "quote" or len(form.items) != 2:
        return form
    quoted = form.items[1]
    if quoted.kind == "symbol":
        return quoted._replace(kind="str")
    if quoted.kind in ("list", "call"):
        return quoted._replace(
            kind="list",
            items=tuple(i._replace(kind="str") if i.kind == "symbol" else i for i in quoted.items),
        )
    return quoted


def _quote(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a quoted name, number or string, and return its constant as a node."""
    literal = unquoted(form)
    if literal.kind not in ("str", "int", "float"):
        raise checker.error("Only a name, a number or a string can be quoted here.", form)
    return checker.check(literal, env, tail=tail)


def literals(checker: Checker, form: Form, clause: bool = False) -> tuple[Form, ...]:
    """Return the keys of one ``case`` clause, or the options of ``in``."""
    form = unquoted(form)
    keys = form.items if form.kind == "list" or (clause and form.kind == "call") else (form,)
    keys = tuple(
        k._replace(kind="str") if clause and k.kind == "symbol" else unquoted(k) for k in keys
    )
    for key in keys:
        if key.kind not in ("str", "int", "float"):
            raise checker.error("A string or a number is expected here.", key)
    if not keys:
        raise checker.error("The list is empty. Write at least one string or number.", form)
    return keys


def _member(checker: Checker, subject: Node, keys: tuple[Form, ...]) -> Node:
    """Return the node that tests whether a value is one of several literals."""
    type = subject.type or "str"
    result: Node | None = None
    for key in keys:
        # Strings are compared as one set; numbers are compared one by one.
        if (key.kind == "str") != (type == "str") or type == "bool":
            what = {"num": "numbers", "str": "strings"}.get(type, "no literal")
            raise checker.error(
                f"This literal has the wrong type: the tested value is compared with {what}.",
                key,
            )
        if type == "str":
            checker.check_word(checker.dag.constant(key.text, "str"), subject, key)
        else:
            same = checker.dag.make("=", subject, checker.dag.number(key.number))
            result = same if result is None else checker.dag.make("or", result, same)
    return result if result is not None else checker.dag.member(subject, [key.text for key in keys])


def _in(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(in value [literals])`` and return its node."""
    value, options = checker.arity(form, 2, 2)
    if unquoted(options).kind != "list":
        raise checker.error(
            f'{form.head} takes a value and a list of literals: ({form.head} kind ["fact" "event"]).',
            options,
        )
    return _member(checker, checker.check(value, env), literals(checker, options))


def _not_in(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(not-in value [literals])`` and return its node."""
    return checker.dag.make("not", _in(checker, form, env, tail))


def _one_of(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(one-of value literal ...)`` and return its node."""
    value, *options = checker.arity(form, 2)
    keys = tuple(key for option in options for key in literals(checker, option))
    return _member(checker, checker.check(value, env), keys)


def case_keys(
    checker: Checker, form: Form
) -> tuple[Form, list[tuple[tuple[Form, ...], Form]], Form]:
    """Return the subject of a ``case``, its keys with their values, and its ``else`` value."""
    subject, *rest = checker.arity(form, 3)
    clauses = all(map(is_case_clause, rest))
    pairs, otherwise = paired(checker, form, tuple(rest), clauses)
    return (
        subject,
        [(literals(checker, key, clause=clauses), value) for key, value in pairs],
        otherwise,
    )


def _case(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(case subject key value ... else value)`` and return its node."""
    subject_form, pairs, otherwise = case_keys(checker, form)
    subject = checker.check(subject_form, env)
    if subject.type == "bool":
        raise checker.error("case compares strings or numbers; use if.", subject_form)
    keys = [key for key, _ in pairs]
    forms = [*(value for _, value in pairs), otherwise]
    nodes = checker.unify(
        [checker.check(v, env, tail=tail) for v in forms], forms, "The branches of case"
    )
    tests = [_member(checker, subject, group) for group in keys]
    numbers = [n.value for n in nodes if n.constant and isinstance(n.value, float)]
    if subject.type == "str" and len(numbers) == len(nodes):
        # A lookup table: 28 comparisons of strings would cost more than the rest of a policy.
        lookup: dict[str, float] = {}
        for group, number in zip(keys, numbers[:-1], strict=True):
            for key in group:
                lookup.setdefault(key.text, number)
        return checker.dag.table(subject, tuple(lookup), tuple(lookup.values()), numbers[-1])
    return _nested(checker, tests, nodes)


def _null_test(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(null? value)`` and return its node."""
    (value,) = checker.arity(form, 1, 1)
    return checker.dag.make("null?", checker.check(value, env))


def _if_null(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(if-null value ... default)``, the first value that is not null, and return its node."""
    arguments = list(checker.arity(form, 2))
    nodes = checker.unify(
        [checker.check(a, env, tail=tail) for a in arguments],
        arguments,
        f"The values of {form.head}",
    )
    result = nodes[-1]
    for node in reversed(nodes[:-1]):
        result = checker.dag.make("if-null", node, result)
    return result


def _direct(name: str, checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a call to a function with a fixed number of arguments, and return its node."""
    takes = PRIMITIVES[name].takes
    arguments = checker.arity(form, len(takes), len(takes))
    nodes = [
        checker.want(a, env, t, f"{form.head} takes") for a, t in zip(arguments, takes, strict=True)
    ]
    return checker.dag.make(name, *nodes)


def _fold(name: str, checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a variadic function call and return its node, which combines the arguments from the left.

    With one argument, ``(- a)`` negates, ``(/ a)`` inverts, and any other function returns it.
    """
    type = FOLDS.get(name, "num")
    result, *rest = [
        checker.want(a, env, type, f"{form.head} takes") for a in checker.arity(form, 1)
    ]
    if not rest and name == "-":
        return checker.dag.make("neg", result)
    if not rest and name == "/":
        return checker.dag.make("/", checker.dag.number(1.0), result)
    for node in rest:
        result = checker.dag.make(name, result, node)
    return result


def _compare(name: str, checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a comparison of two or more values in a chain, such as ``(< a b c)``, and return its node."""
    arguments = list(checker.arity(form, 2, 2 if name == "!=" else None))
    # Equality compares values of any type, and words with the vocabulary of the other side.
    if name in ("=", "!="):
        nodes = checker.unify(
            [checker.check(a, env) for a in arguments], arguments, f"The sides of {form.head}"
        )
        for i, argument in enumerate(arguments):
            checker.check_word(nodes[i], nodes[i - 1] if i else nodes[1], argument)
    else:
        nodes = [checker.want(a, env, "num", f"{form.head} compares numbers:") for a in arguments]
    pairs = [_pair(checker, name, left, right) for left, right in pairwise(nodes)]
    result = pairs[0]
    for pair in pairs[1:]:
        result = checker.dag.make("and", result, pair)
    return result


def _pair(checker: Checker, name: str, left: Node, right: Node) -> Node:
    """Return the node that compares two values."""
    dag = checker.dag
    if name in (">", ">="):
        return dag.make("<" if name == ">" else "<=", right, left)
    if name in ("<", "<="):
        return dag.make(name, left, right)
    op = {"str": "same", "bool": "iff"}.get(left.type or "", "=")
    same = dag.make(op, dag.typed(left, "num"), dag.typed(right, "num"))
    return same if name == "=" else dag.make("not", same)


def _unit(name: str, checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a call to a unit of time, which converts an amount to days, and return its node."""
    (amount,) = checker.arity(form, 1, 1)
    times, per = UNITS[name]
    node = checker.dag.make(
        "*", checker.want(amount, env, "num", f"{name} takes"), checker.dag.number(times)
    )
    return checker.dag.make("/", node, checker.dag.number(per))


def _param(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a tunable parameter and return a constant node with its current value."""
    param = declared_param(form, checker.text)
    if param.name in checker.overrides:
        param = replace(param, value=checker.overrides[param.name])
    if checker.params.setdefault(param.name, param) != param:
        raise checker.error(
            f":{param.name} is declared twice, with another default or other bounds.", form.items[1]
        )
    return checker.dag.number(param.value)


def _inherited(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Return the graph node of the parent policy that ``(inherited)`` stands for.

    Its text is checked with its own arguments and helpers, so that no name of one text captures a name of the other.
    """
    checker.arity(form, 0, 0)
    if any(name != form.head for name in checker.calls):
        raise checker.error("(inherited) belongs in a policy, not in a helper.", form)
    parent = checker.helpers.get(form.head)
    if parent is None:
        raise checker.error(
            "(inherited) is the value of the parent's policy, but this text has no parent. Name it in the header "
            'of a pack, (pack mine "description" :inherits memlab), or install the policy in a lab, whose pack is '
            "the parent.",
            form,
            PolicyNameError,
        )
    if parent not in checker.inherited:
        outside = checker.text, checker.helpers, checker.forms, checker.used
        checker.text, checker.helpers, checker.used = parent.text, parent.scope, {}
        checker.forms = forms_for(checker.signature, parent.arguments)
        checker.calls.append(form.head)
        try:
            env = checker.bind(parent.listed)
            checker.inherited[parent] = checker.check(parent.body, env, tail=True)
        finally:
            checker.text, checker.helpers, checker.forms, checker.used = outside
            checker.calls.pop()
    checker.used[form.head] = parent
    return checker.inherited[parent]


def _aggregate(name: str, checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check that a policy may aggregate over the candidates of a slate; return the call's graph node."""
    if not checker.signature.aggregates:
        raise checker.error(
            f"{name} aggregates over a slate, but a policy of {checker.signature.slot} sees one item at a time. "
            f"Remove {name}.",
            form.items[0],
        )
    (value,) = checker.arity(form, 1, 1)
    return checker.dag.aggregate(name, checker.want(value, env, "num", f"{name} takes"))


def _beta_sample(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(beta-sample a b)`` and return its node: the chance that the item's Beta draw is the largest."""
    if not checker.signature.draws:
        raise checker.error(
            f"beta-sample belongs to explore, the slot by which items are drawn. In {checker.signature.slot}, write the "
            "mean of the distribution, (/ a (+ a b)).",
            form.items[0],
        )
    why = f"{form.head} takes"
    return checker.dag.aggregate(
        form.head, *(checker.want(a, env, "num", why) for a in checker.arity(form, 2, 2))
    )


def _update(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(update :stability e1 :difficulty e2)`` and return its record node.

    Every expression reads the old values.
    """
    signature = checker.signature
    if signature.returns != "record":
        raise checker.error(
            f"update sets fields, but {signature.slot} returns {kind_of(signature.returns)}.", form
        )
    if not tail:
        raise checker.error(
            "update must be the result of the policy or of a branch; its value cannot be an argument of another form.",
            form,
        )
    # Each field must exist, appear once and have the type and vocabulary that it has as an input.
    items = form.items[1:]
    fields: dict[str, Node] = {}
    for key, value in zip(items[::2], items[1::2], strict=False):
        if key.kind != "keyword":
            raise checker.error("A field is written as a keyword: (update :stability value).", key)
        if key.text not in signature.fields:
            raise checker.error(
                f"{signature.slot} updates no field :{key.text}. {did_you_mean(key.text, signature.fields)}",
                key,
                PolicyNameError,
            )
        if key.text in fields:
            raise checker.error(f":{key.text} is updated twice.", key)
        declared = signature.inputs[key.text]
        assert declared.type != "set"
        node = checker.want(value, env, declared.type, f"The field {key.text} is")
        if declared.words and node.constant and isinstance(node.value, str):
            checker.check_in(node.value, declared.words, f"a value of {key.text}", value)
        fields[key.text] = node
    if len(items) % 2:
        raise checker.error("The last field of this update has no value.", items[-1])
    return checker.dag.record(fields)


def _set_test(op: str, checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check a call that tests, compares or counts string sets; return the input node of its result."""
    # The words come last and are removed before the names of sets are resolved.
    count = 1 if op == "size" else 2
    names = list(checker.arity(form, count, count))
    words: tuple[str, ...] = ()
    if op.startswith("has"):
        options = names.pop()
        keys = literals(checker, options)
        if op == "has" and unquoted(options).kind == "list":
            raise checker.error(
                'has takes one string: (has tags "style"); several go with has-any, has-all.',
                options,
            )
        if any(key.kind != "str" for key in keys):
            raise checker.error("A set can contain strings only.", options)
        words = tuple(dict.fromkeys(key.text for key in keys))
    sets = []
    for name in names:
        bound = env.get(name.text) if name.kind == "symbol" else None
        if not isinstance(bound, SetName):
            declared = [n for n, item in checker.signature.inputs.items() if item.type == "set"]
            hint = (
                f"the sets of {checker.signature.slot} are {', '.join(declared)}"
                if declared
                else "this slot has none"
            )
            if name.kind == "symbol" and name.text in declared:
                raise checker.unlisted(name)
            raise checker.error(f"{op} takes a set here; {hint}.", name)
        if bound.name not in sets or op not in ("overlap", "jaccard"):
            sets.append(bound.name)
    if len(sets) < len(names):
        raise checker.error(f"{op} compares two sets, but both are the same here.", form)
    derived = Derived(op, tuple(sorted(sets)), words)
    checker.derived[derived.name] = derived
    return checker.dag.input(derived.name, derived.type)


def _function_value(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Refuse an anonymous function, because functions are not values of the language."""
    raise checker.error(
        "A function cannot be a value; write a helper as (defn name [arguments] body).",
        form,
    )


def _misplaced(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Refuse a form that is only allowed at the top of a file."""
    raise checker.error(
        f"{form.head} can be used only at the top level of a file.", form, PolicyNameError
    )


def _length(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(length acts)``, the number of items of the slate, and return its node."""
    (values,) = checker.arity(form, 1, 1)
    return checker.dag.of_slate("length", _of_lists(checker, form, values, env, "list"))


def _range(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(range (length acts))``, the positions of all slate items, and return its node.

    ``(range 0 (length acts))`` means the same. Other ranges are refused.
    """
    *start, size = checker.arity(form, 1, 2)
    if checker.check(size, env).op != "length" or any(
        each.number or each.kind != "int" for each in start
    ):
        raise checker.error("A range must cover all items, as in (range 0 (length acts)).", form)
    return checker.dag.of_slate("items", checker.dag.constant(True, "bool"))


def _filter(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(filter (lambda (i) test) items)`` and return its node.

    The result is the positions for which the test is true. A null test counts as false.
    """
    function, items = checker.arity(form, 2, 2)
    if function.head not in FUNCTION_HEADS:
        raise checker.error(
            "filter takes a function first: (filter (lambda (i) test) items).", function
        )
    parts = definition(function, checker.text)
    if len(parts.arguments) != 1:
        raise checker.error(
            "The function of filter must have one argument, a position.", parts.listed
        )
    scope = {**env, parts.arguments[0].text: checker.dag.of_slate("position")}
    test = checker.want(parts.body, scope, "bool", "filter tests")
    selected = _of_lists(checker, form, items, env, "items").args[0]
    passed = checker.dag.make("if-null", test, checker.dag.constant(False, "bool"))
    return checker.dag.of_slate("items", checker.dag.make("and", selected, passed))


def _nth(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(nth list position)``, where the position is the argument of a filter's function; return its node.

    The node is the value of the list at the position that the filter tests.
    """
    values, position = checker.arity(form, 2, 2)
    listed = _of_lists(checker, form, values, env, "list")
    _of_lists(checker, form, position, env, "position")
    return listed.args[0]


def _is_empty(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(empty? items)``, which tests whether ``items`` has no position, and return its node."""
    (items,) = checker.arity(form, 1, 1)
    dag = checker.dag
    selected = _of_lists(checker, form, items, env, "items").args[0]
    marks = dag.make("if", selected, dag.number(1.0), dag.number(0.0))
    return dag.make("=", dag.aggregate("slate-max", marks), dag.number(0.0))


def _first(checker: Checker, form: Form, env: Env, tail: bool) -> Node:
    """Check ``(first items)``, the first of the positions in the order of the slate, and return its node."""
    (items,) = checker.arity(form, 1, 1)
    dag = checker.dag
    selected = _of_lists(checker, form, items, env, "items").args[0]
    rank = dag.aggregate(
        "slate-rank", dag.make("if", selected, dag.number(0.0), dag.constant(None, "num"))
    )
    is_first = dag.make("=", rank, dag.number(1.0))
    return dag.of_slate("pick", dag.make("if", is_first, dag.number(1.0), dag.number(0.0)))


def _of_lists(checker: Checker, form: Form, argument: Form, env: Env, op: str) -> Node:
    """Check that an argument is the list or position kind `op` and return its node."""
    node = checker.check(argument, env)
    if node.op != op:
        raise checker.error(
            f"{form.head} takes {kind_of(op)} here, but this is {kind_of(node.type)}.", argument
        )
    return node


# Every built-in form that any policy may call.
FORMS: dict[str, Handler] = {
    "let": _let,
    "if": _if,
    "when": _when,
    "cond": _cond,
    "case": _case,
    "quote": _quote,
    "in": _in,
    "not-in": _not_in,
    "one-of": _one_of,
    "null?": _null_test,
    "if-null": _if_null,
    "param": _param,
    "inherited": _inherited,
    "update": _update,
    "fn": _function_value,
    "defn": _misplaced,
    "defpolicy": _misplaced,
    "pack": _misplaced,
    "setting": _misplaced,
    "inherit": _misplaced,
    **{name: partial(_direct, name) for name in DIRECT},
    **{name: partial(_fold, name) for name in (*FOLDS, "-", "/")},
    **{name: partial(_compare, name) for name in COMPARISONS},
    **{name: partial(_unit, name) for name in UNITS},
    **{name: partial(_set_test, name) for name in SET_TESTS},
    **{name: partial(_aggregate, name) for name in AGGREGATE_FORMS},
    "beta-sample": _beta_sample,
}

LIST_FORMS: dict[str, Handler] = {
    "length": _length,
    "range": _range,
    "filter": _filter,
    "nth": _nth,
    "empty?": _is_empty,
    "first": _first,
}
"""Additional forms of policies over lists: enough for the explore policy of the associative pack as published."""


def forms_for(signature: Signature, arguments: Sequence[str]) -> Mapping[str, Handler]:
    """Return the forms that a policy with the given arguments may use."""
    return {**FORMS, **LIST_FORMS} if any(name in signature.lists for name in arguments) else FORMS
