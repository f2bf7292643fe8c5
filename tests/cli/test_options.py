"""Options of all commands: numbers that are none are refused in one sentence, wherever a command takes one."""

import click
import pytest
from click.testing import CliRunner

from remask.cli.main import remask
from remask.cli.options import FiniteRange


def number_options(command=remask, path=()):
    """Every option of every command that takes a number with a point, and how it is called."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from number_options(one, (*path, name))
        return
    for one in command.params:
        if isinstance(one.type, click.FloatRange | click.types.FloatParamType):
            yield (*path, one.opts[0])


@pytest.mark.parametrize("call", list(number_options()), ids=" ".join)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_what_is_no_finite_number_is_refused(call, value):
    done = CliRunner().invoke(remask, [*call, value])
    assert done.exit_code == 2
    assert "is not a finite number" in done.output


def test_a_range_still_holds():
    kind = FiniteRange(0, 1)
    assert (kind.convert("0.5", None, None), kind.convert(1, None, None)) == (0.5, 1.0)
    for value in ("2", "-0.1", "x"):
        with pytest.raises(click.BadParameter):
            kind.convert(value, None, None)
