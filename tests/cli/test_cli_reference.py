"""What is written about the command line is what the command line does."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import servers
from tests.cli.terminal import Home
from tests.journeys.support import CONSOLE, Proxy, environment, tiny

from mcpproxy.cli import words
from mcpproxy.cli.commands import GROUPS
from mcpproxy.cli.reference.__main__ import files
from mcpproxy.cli.reference.markdown import EXIT_CODES
from mcpproxy.cli.reference.tree import Command, every, root

COMMANDS = [command for command in every(root()) if not command.commands]
# These go on until they are stopped, or need a server that asks for a login; other tests run them for real.
ENDLESS = (
    "mcpproxy serve",
    "mcpproxy activity watch",
    "mcpproxy upstream login",
    "mcpproxy upstream logout",
    "mcpproxy upstream logs demo --follow",
)

SOME_ID = "01KBDZ3V7W9Q4C2M8T5N6R1XYA"


@pytest.mark.parametrize("path", [path for path in files() if path.suffix != ".py"], ids=lambda path: path.name)
def test_generated_pages_are_current(path: Path) -> None:
    assert path.read_text() == files()[path], "run: python -m mcpproxy.cli.reference"


def test_the_words_for_completion_are_current() -> None:
    (text,) = (text for path, text in files().items() if path.suffix == ".py")
    made: dict[str, Any] = {}
    exec(text, made)
    assert made["WORDS"] == words.WORDS, "run: python -m mcpproxy.cli.reference"


def test_every_command_of_the_contract_is_there() -> None:
    contract = """serve; call tool-read; call tool-write; call tool-destructive; tools list; tools search; tools show;
    tools approve; tools diff; upstream list; upstream add; upstream add-json; upstream remove; upstream enable;
    upstream disable; upstream restart; upstream approve; upstream login; upstream logout; upstream logs;
    upstream import; activity list; activity show; activity watch; activity summary; activity export; activity verify;
    token create; token list; token revoke; config show; config validate; config path; connect; dashboard; doctor;
    status; version; completion"""
    wanted = {" ".join(name.split()) for name in contract.split(";")}
    assert {" ".join(command.path) for command in COMMANDS} == wanted
    assert set(GROUPS) == {name.split()[0] for name in wanted}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_says_what_it_does_and_shows_how(command: Command) -> None:
    assert command.summary
    assert command.examples
    for parameter in command.parameters:
        assert parameter.help, parameter.names


@pytest.mark.parametrize("command", list(every(root())), ids=lambda command: command.name)
def test_every_bracket_of_a_usage_line_is_closed(command: Command) -> None:
    assert command.usage.count("[") == command.usage.count("]")


def test_the_exit_codes_are_those_of_the_errors() -> None:
    from mcpproxy.cli import errors

    codes = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    assert {code for code, _ in EXIT_CODES} == codes


def test_the_man_page_has_no_fault() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    page = next(path for path in files() if path.suffix == ".1")
    done = subprocess.run([groff, "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    plain = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)
    for title in ("NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES"):
        assert f"\n{title}\n" in plain


# The examples.


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home in which every example can be run: its own daemon, and programs and servers of the names they use."""
    home = tmp_path_factory.mktemp("x")
    programs = home / "bin"
    programs.mkdir()
    (programs / "mcpproxy").symlink_to(CONSOLE)
    spec = tiny()
    for name in ("npx", "python3"):
        program = programs / name
        program.write_text(f"#!/bin/sh\nexec {shlex.join([spec['command'], *spec['args']])}\n")
        program.chmod(0o755)
    (home / ".config/fish/completions").mkdir(parents=True)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{programs}:{before}"
    try:
        with Proxy(home, servers()) as proxy:
            proxy.start()
            proxy.await_ready("demo")
            (home / "mcp_config.json").chmod(0o600)
            yield Home(home, proxy.config, proxy.data)
    finally:
        os.environ["PATH"] = before


def test_every_example_of_help_runs(stage: Home) -> None:
    env = {**environment(stage.path), "MCPPROXY_CONFIG": str(stage.config), "MCPPROXY_DATA": str(stage.data)}
    failed = []
    for command in COMMANDS:
        for example in command.examples:
            if example.startswith(ENDLESS):
                continue
            line = example.replace(SOME_ID, _newest(stage)) if SOME_ID in example else example
            done = subprocess.run(
                ["/bin/bash", "-c", line],
                env={**env, "ROOT": "/srv", "DOCS_KEY": "k", "BROWSER": "true"},
                cwd=stage.path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            if done.returncode != 0 or "Traceback" in done.stderr:
                failed.append(f"{line}: {done.returncode}: {done.stderr}")
            elif "-o json" in line:
                json.loads(done.stdout)
    assert failed == [], "\n".join(failed)


def _newest(stage: Home) -> str:
    id_: str = stage.json("activity", "list", "-n", "1")["activities"][0]["id"]
    return id_


def test_help_is_plain_text_and_names_the_common_options(tmp_path: Path) -> None:
    done = subprocess.run([CONSOLE, "--help"], env=environment(tmp_path), capture_output=True, text=True, check=True)
    for name in (*GROUPS, "--config", "--data-dir", "--output", "--log-level"):
        assert name in done.stdout
    assert "\x1b" not in done.stdout
