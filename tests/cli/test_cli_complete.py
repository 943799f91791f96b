"""The shell completes commands, options, servers, tools and parameters, and nothing that it would run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.conftest import make_home
from tests.cli.terminal import Home
from tests.journeys.support import CONSOLE, environment

from mcpproxy.activity.record import INTENT_TYPES, STATUSES, TYPES
from mcpproxy.activity.summary import PERIODS
from mcpproxy.cli import complete
from mcpproxy.cli.connect.clients import CLIENTS
from mcpproxy.cli.options import LEVELS, OUTPUTS
from mcpproxy.cli.shells import SCRIPTS
from mcpproxy.cli.upstream.foreign import SOURCES
from mcpproxy.storage.engine import open_storage

TOOLS = [
    {
        "name": "search_notes",
        "description": "Find notes. More.",
        "inputSchema": {"properties": {"query": {}, "a b": {}}},
    },
    {"name": "$(touch pwned)", "description": "x"},
    {"name": "a;rm -rf ~", "description": "x"},
    {"name": "`id`", "description": "x"},
    {"name": "two words", "description": "x"},
    {"name": "--yes", "description": "x"},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a server that names its tools to do harm."""
    made = make_home(tmp_path_factory.mktemp("c"), {"demo": {"command": "x"}, "$(id)": {"command": "x"}})
    open_storage("sqlite", made.data).close()
    with closing(sqlite3.connect(made.data / "mcpproxy.db")) as database:
        listing = json.dumps({"definitions": [json.dumps(tool) for tool in TOOLS]})
        database.execute("INSERT INTO tool_lists VALUES ('demo', 'x', ?, 0)", (listing,))
        database.commit()
    return made


def offers(home: Home, *words: str, shell: str = "fish") -> list[str]:
    result = subprocess.run(
        [CONSOLE, "__complete", shell, *words],
        env={**environment(home.path), "MCPPROXY_CONFIG": str(home.config), "MCPPROXY_DATA": str(home.data)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ver",), ["version\tPrint the version"]),
        (("upstream", "logs", ""), ["demo"]),
        (("call", "tool-read", "de"), ["demo:search_notes\tFind notes"]),
        (("call", "tool-read", "demo:search_notes", ""), ["query="]),
        (("-o", "json", "tools", "show", "demo:s"), ["demo:search_notes\tFind notes"]),
        (("activity", "list", "--status", "b"), ["blocked"]),
        (("activity", "list", "--intent-type=d"), ["--intent-type=destructive"]),
        (("activity", "list", "--tool", ""), ["demo:search_notes\tFind notes"]),
        (("connect", "cl"), ["claude-code", "claude-desktop"]),
        (("completion", ""), ["bash", "fish", "zsh"]),
        (("--config", ""), [":files"]),
        (("--config=x",), [":files"]),
        (("upstream", "add", "x", "--", ""), []),
        (("nonsense", ""), None),
    ],
)
def test_what_can_follow_is_offered(home: Home, words: tuple[str, ...], offered: list[str] | None) -> None:
    found = offers(home, *words)
    if offered is not None:
        assert found == offered


def test_options_are_offered_with_those_of_every_command(home: Home) -> None:
    found = {line.partition("\t")[0] for line in offers(home, "tools", "search", "-")}
    assert {"--explain", "--limit", "-n", "--output", "--config", "--json"} <= found


def test_a_name_that_means_something_to_a_shell_is_never_offered(home: Home) -> None:
    for words in (("tools", "show", ""), ("upstream", "remove", ""), ("call", "tool-read", "demo:search_notes", "")):
        text = "\n".join(offers(home, *words))
        for sign in "$;`&|()<>'\"\\*~":
            assert sign not in text


def test_bash_completes_for_real(home: Home, tmp_path: Path) -> None:
    script = f"""
export PATH={CONSOLE.parent}:$PATH MCPPROXY_CONFIG={home.config} MCPPROXY_DATA={home.data}
eval "$(mcpproxy completion bash)"
ask() {{ COMP_LINE=$1; COMP_POINT=${{#1}}; _mcpproxy; echo "${{COMPREPLY[*]}}"; }}
ask "mcpproxy up"
ask "mcpproxy tools show demo:se"
ask "mcpproxy call tool-read demo:search_notes qu"
ask "mcpproxy call tool-read 'demo:search_notes' query=x --rea"
ask "mcpproxy tools show 'demo:se"
ask "mcpproxy activity list --status=b"
ask 'mcpproxy activity list --status="b'
ask "mcpproxy --config=x"
"""
    done = subprocess.run(
        ["/bin/bash", "-c", script], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "upstream",
        "search_notes",
        "query=",
        "--reason",
        "demo:search_notes",
        "blocked",
        "blocked",
        "",
    ]


TYPED = {
    "mcpproxy up": "mcpproxy upstream ",
    "mcpproxy tools show demo:se": "mcpproxy tools show demo:search_notes ",
    "mcpproxy tools show 'demo:se": "mcpproxy tools show 'demo:search_notes' ",
    "mcpproxy call tool-read 'demo:search_notes' qu": "mcpproxy call tool-read 'demo:search_notes' query=",
    "mcpproxy upstream logs de": "mcpproxy upstream logs demo ",
    "mcpproxy activity list --status b": "mcpproxy activity list --status blocked ",
    "mcpproxy activity list --status=b": "mcpproxy activity list --status=blocked ",
    "mcpproxy --config ~/here": "mcpproxy --config ~/here.json ",
    "mcpproxy --config=he": "mcpproxy --config=here.json ",
}
"""What a person types before the tab key, and what stands there behind it."""


def in_shell(name: str, script: str, home: Home, place: Path) -> str:
    """Run a script in a shell that this machine may not have, in a place with a file `here.json`."""
    shell = shutil.which(name)
    if shell is None:
        pytest.skip(f"{name} is not installed")
    (place / "here.json").touch()
    path = f"{CONSOLE.parent}:{os.environ['PATH']}"
    paths = {"PATH": path, "MCPPROXY_CONFIG": str(home.config), "MCPPROXY_DATA": str(home.data)}
    command = [shell, *(["-f"] if name == "zsh" else []), "-c", script]
    done = subprocess.run(
        command, env={**environment(place), **paths}, cwd=place, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_zsh_completes_for_real(home: Home, tmp_path: Path) -> None:
    """At a terminal of its own: a key that shows the line tells what the tab key left there."""
    lines = shlex.join(TYPED)
    script = f"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1= RPS1=; unsetopt prompt_sp; autoload -Uz compinit; compinit -u -D; bindkey -e'
zpty -w shell 'show() {{ print -r -- "<$BUFFER>"; BUFFER= }}; zle -N show; bindkey "^Xe" show'
zpty -w shell 'eval "$(mcpproxy completion zsh)"; print rea""dy'
zpty -r shell got '*ready*'
for line in {lines}; do
    zpty -w -n shell "$line"$'\\t\\C-xe'
    zpty -r shell got '*<*>*'
    print -r -- "${{${{got##*<}}%%>*}}"
done
"""
    assert in_shell("zsh", script, home, tmp_path).splitlines() == [*TYPED.values()]


def test_fish_completes_for_real(home: Home, tmp_path: Path) -> None:
    lines = "\n".join(f'complete -C "{line}"' for line in TYPED)
    offered = in_shell("fish", f"mcpproxy completion fish | source\n{lines}", home, tmp_path).splitlines()
    # It names the word; the quotes and the space behind it are the line editor's.
    words = [line.rstrip().rpartition(" ")[2].strip("'") for line in TYPED.values()]
    assert [offer.partition("\t")[0] for offer in offered] == words


def test_without_configuration_and_database_it_is_silent(tmp_path: Path) -> None:
    nowhere = Home(tmp_path, tmp_path / "none.json", tmp_path / "none")
    assert offers(nowhere, "upstream", "logs", "") == []
    assert offers(nowhere, "tools", "show", "") == []


def test_the_choices_are_those_of_the_rest_of_the_house() -> None:
    choices = complete._CHOICES
    assert choices["--type"] == TYPES
    assert choices["--status"] == STATUSES
    assert choices["--intent-type"] == choices["--allow"] == INTENT_TYPES
    assert choices["--period"] == tuple(PERIODS)
    assert choices["--output"] == choices["-o"] == OUTPUTS
    assert choices["--log-level"] == LEVELS
    assert set(choices["CLIENT"]) == set(CLIENTS)
    assert choices["--from"] == tuple(SOURCES)
    assert choices["SHELL"] == tuple(SCRIPTS)


@pytest.mark.parametrize(
    "words", ["['version']", "['completion', 'zsh']", "['__complete', 'bash', 'mcpproxy tools sh']"]
)
def test_quick_answers_come_before_anything_slow_is_imported(words: str, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom mcpproxy.cli.main import main\n"
        f"sys.argv = ['mcpproxy', *{words}]\nmain()\n"
        "slow = {'typer', 'rich', 'msgspec', 'typing', 'asyncio', 'sqlalchemy', 'mcp', 'pydantic'}\n"
        "assert not slow & set(sys.modules), slow & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words", ["status", "tools list", "upstream list", "activity list", "config show", "token list", "tools search x"]
)
def test_a_command_that_neither_serves_nor_connects_never_imports_the_sdk(daemon: Home, words: str) -> None:
    program = (
        "import sys\nfrom mcpproxy.cli.main import main\n"
        f"sys.argv = ['mcpproxy', '--config', {str(daemon.config)!r}, '--data-dir', {str(daemon.data)!r}, "
        f"*{words.split()!r}]\n"
        "try:\n    main()\nexcept SystemExit as ending:\n    assert not ending.code, ending.code\n"
        "assert not {'mcp', 'fastapi', 'uvicorn', 'sqlalchemy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(daemon.path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
