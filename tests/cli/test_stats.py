"""The local counts as people and programs read them."""

import datetime
import json

from click.testing import CliRunner

from remask.cli.stats import stats
from remask.lsp_server.document import Position
from remask.lsp_server.statistics import Statistics


def test_nothing_counted_yet():
    result = CliRunner().invoke(stats)
    assert (result.exit_code, result.output) == (0, "Nothing has been counted yet.\n")
    values = json.loads(CliRunner().invoke(stats, ["--json"]).output)
    assert values["acceptance_rate"] is None
    assert values["days"] == {}


def test_what_was_counted():
    counted = Statistics()
    for number in range(4):
        counted.offered(number, "d", Position(0, 0), ("abcd",))
    counted.accepted(3, 0, None)
    counted.flush()
    result = CliRunner().invoke(stats)
    assert "4 completions offered (0 known to be shown)" in result.output
    assert "1 accepted whole, 0 by words or lines (25%)" in result.output
    assert "0 typed by hand as they were offered, 3 passed over" in result.output
    assert datetime.date.today().isoformat() in result.output
    values = json.loads(CliRunner().invoke(stats, ["--json", "--days", "1"]).output)
    assert values["total"]["characters_accepted"] == 4
    assert values["acceptance_rate"] == 0.25
