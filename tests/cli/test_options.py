"""Options keep the names and choices that scripts know; types, limits and defaults are those of the verbs."""

from pathlib import Path

import click
import pytest

import memlab
from memlab.kernel.base.arguments import Count, checked, describe_parameters
from memlab.ui.cli import main

FIXTURES = Path(__file__).parents[1] / "fixtures"


def commands(group=main, path=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def words_of(command):
    for parameter in command.params:
        choices = sorted(getattr(parameter.type, "choices", ()))
        if isinstance(parameter, click.Argument):
            yield parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
        else:
            names = "|".join(sorted(parameter.opts + parameter.secondary_opts))
            yield names + (f"={'/'.join(choices)}" if choices else "")


KNOWN = dict(line.split(": ") for line in (FIXTURES / "options.txt").read_text().splitlines())
COMMANDS = dict(commands())


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_options_keep_their_names_and_choices(name):
    assert set(KNOWN[name].split()) == set(words_of(COMMANDS[name]))


def test_every_command_is_listed():
    assert set(KNOWN) == set(COMMANDS)


def test_an_option_has_the_default_and_the_limits_of_its_verb():
    options = {param.name: param for param in COMMANDS["context"].params}
    budget = describe_parameters(memlab.Lab.context)["budget"]
    assert (options["budget"].default, options["budget"].type.min) == (
        budget.default,
        budget.limits.lower,
    )
    assert options["budget"].help == "Maximum number of tokens."


def test_a_parameter_is_described_by_its_annotation_and_docstring():
    @checked
    def draw(lines: Count, width: float | None = None):
        """Draw.

        Parameters
        ----------
        lines
            How many
            lines.
        width
            In points.

        Returns
        -------
        None
        """

    described = describe_parameters(draw)
    assert (described["lines"].required, described["lines"].doc) == (True, "How many lines.")
    assert (described["width"].types, described["width"].default, described["width"].doc) == (
        (float,),
        None,
        "In points.",
    )
