"""The common options are understood wherever they stand."""

from pathlib import Path

import pytest

from mcpproxy.cli.options import UsageError, split


@pytest.mark.parametrize(
    "argv",
    [
        ["-o", "json", "tools", "list", "--server", "a"],
        ["tools", "-o", "json", "list", "--server", "a"],
        ["tools", "list", "--server", "a", "--output=json"],
        ["tools", "list", "--server", "a", "--json"],
        ["tools", "list", "-ojson", "--server", "a"],
    ],
)
def test_they_may_stand_before_between_and_after_the_words_of_a_command(argv: list[str]) -> None:
    options, rest = split(argv)
    assert options.output == "json"
    assert rest == ["tools", "list", "--server", "a"]


def test_what_stands_behind_two_dashes_is_the_commands_own() -> None:
    options, rest = split(["upstream", "add", "x", "--", "npx", "-o", "json", "--config", "c"])
    assert options.output == "table"
    assert rest == ["upstream", "add", "x", "--", "npx", "-o", "json", "--config", "c"]


def test_paths_and_levels_are_taken_up() -> None:
    options, rest = split(["--config", "a.json", "status", "--data-dir=/d", "--log-level", "debug"])
    assert (options.config, options.data_dir, options.log_level) == (Path("a.json"), Path("/d"), "debug")
    assert rest == ["status"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-o", "xml"], "table, json, yaml"),
        (["--log-level", "loud"], "debug, info, warning, error"),
        (["--config"], "--config needs a value"),
    ],
)
def test_a_value_that_means_nothing_is_refused_with_what_would(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        split(argv)
