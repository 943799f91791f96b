"""Tables fit their terminal, pipes get everything."""

import json
import sys
from io import StringIO

import msgspec
import pytest
import yaml

from mcpproxy.cli.screen import Cell, Column, Screen, fitting, value_of

COLUMNS = (Column("ID"), Column("NAME", gives=1), Column("TEXT", gives=2), Column("N", right=True))


def test_columns_keep_their_natural_width_where_there_is_room() -> None:
    assert fitting(COLUMNS, [["1", "name", "text", "12"]], 80) == [2, 4, 4, 2]


def test_the_column_that_gives_most_is_cut_first_and_one_that_gives_nothing_never() -> None:
    line = ["01KBDZ3V7W9Q4C2M8T5N6R1XYA", "n" * 20, "t" * 40, "1"]
    assert fitting(COLUMNS, [line], 26 + 20 + 10 + 1 + 6) == [26, 20, 10, 1]
    assert fitting(COLUMNS, [line], 50) == [26, 11, 6, 1]
    assert fitting(COLUMNS, [line], 10) == [26, 6, 6, 1]


def test_wide_characters_count_twice() -> None:
    assert fitting((Column("A"),), [["東京"]], 80) == [4]


def test_a_pipe_gets_whole_tab_separated_lines_with_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    Screen("table").rows(COLUMNS, [[Cell("1"), Cell(""), Cell("a\tb\n" + "c" * 500, "short"), Cell("2", style="red")]])
    assert capsys.readouterr().out == "ID\tNAME\tTEXT\tN\n1\t-\ta b " + "c" * 500 + "\t2\n"


def test_json_in_a_pipe_is_one_line_and_keeps_raw_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    Screen("json").show({"a": msgspec.Raw(b'{"n": 0.10, "big": 12345678901234567890123}')}, lambda: None)
    assert capsys.readouterr().out == '{"a":{"n": 0.10, "big": 12345678901234567890123}}\n'


def test_half_characters_survive_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    raw = msgspec.Raw(rb'{"text":"a\ud800b"}')
    assert value_of(raw) == {"text": "a\ud800b"}
    Screen("json").show(raw, lambda: None)
    assert json.loads(capsys.readouterr().out) == {"text": "a\ud800b"}
    Screen("yaml").show(raw, lambda: None)
    assert yaml.safe_load(capsys.readouterr().out) == {"text": "a\ud800b"}


def test_yaml_holds_nothing_that_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    Screen("yaml").show({"text": "a\x1b[31m\u202eb ü"}, lambda: None)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert yaml.safe_load(out) == {"text": "a\x1b[31m\u202eb ü"}


def test_remarks_stay_out_of_stdout_and_out_of_json_mode(capsys: pytest.CaptureFixture[str]) -> None:
    Screen("table").note("a \x1b[31mremark")
    Screen("json").note("a remark")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "a remark\n"


def test_markup_in_a_cell_is_text_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(StringIO):
        def isatty(self) -> bool:
            return True

    out = Tty()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "60")
    screen = Screen("table")
    screen.rows((Column("A"), Column("B")), [[Cell("[red]x[/red]"), Cell(":smile: \x1b[2Jb")]])
    assert "[red]x[/red]  :smile: b" in out.getvalue()
