"""What the docs and the Grafana dashboard say is so: every example is run, every name is looked up."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.api.serving import PREFIX, Rest, serving
from tests.calls.proxy import KEY

DOCS = Path(__file__).parents[2] / "docs"
ADDRESS = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    demo = {"name": "demo", "command": sys.executable, "args": ["-m", "mcpproxy.demo"]}
    with serving(tmp_path_factory.mktemp("docs") / "data", [demo]) as found:
        found.get("status")  # makes the REST face, which takes a moment
        yield found


def examples() -> list[str]:
    found: list[str] = []
    for name in ("api.md", "access.md"):
        for block in re.findall(r"```sh\n(.*?)```", (DOCS / name).read_text(), re.DOTALL):
            lines = block.replace("\\\n", " ").splitlines()
            found += [line for line in lines if line.startswith("curl ") and "--unix-socket" not in line]
    return found


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl to run the examples with")
@pytest.mark.parametrize("example", examples())
def test_an_example_of_the_docs_works(rest: Rest, example: str, tmp_path: Path) -> None:
    command = shlex.split(example.replace(ADDRESS, rest.url).replace("$MCPPROXY_API_KEY", KEY))
    command = [word.replace('"command":"npx"', '"enabled":false,"command":"npx"') for word in command]
    patience = "2" if "/events" in example else "30"
    more = ["--silent", "--show-error", "--noproxy", "*", "--write-out", "\n%{http_code}", "--max-time", patience]
    done = subprocess.run([*command, *more], capture_output=True, text=True, cwd=tmp_path, check=False)
    if "/events" in example:
        assert "event: ready" in done.stdout
        return
    assert done.returncode == 0, done.stderr
    status = int(done.stdout.rpartition("\n")[2])
    assert status == (422 if "blokced" in example else 201 if _creates(example) else 200), done.stdout


def _creates(example: str) -> bool:
    return " -d " in example and ("/tokens " in example or "/servers " in example)


def test_there_are_examples_to_run() -> None:
    assert len(examples()) >= 10


def test_every_route_is_in_the_docs(rest: Rest) -> None:
    text = (DOCS / "api.md").read_text()
    for path in rest.ask("GET", "openapi.json").json()["paths"]:
        resource = path.removeprefix(PREFIX)
        parts = resource.rpartition("/")
        assert resource in text or f"`{parts[1]}{parts[2]}" in text, resource


def metrics(rest: Rest) -> set[str]:
    rest.post("tools/call", {"name": "demo:list_notes", "variant": "read"})
    families = text_string_to_metric_families(rest.ask("GET", "/metrics").text)
    return {sample.name for family in families for sample in family.samples}


def test_every_metric_is_in_the_docs_and_no_other(rest: Rest) -> None:
    table = (DOCS / "api.md").read_text().partition("### Metrics")[2].partition("### Traces")[0]
    told = set(re.findall(r"`(mcpproxy_\w+)`", table))
    known = {re.sub("_(bucket|count|sum)$", "", name) for name in metrics(rest) if name.startswith("mcpproxy_")}
    assert told == known


def test_the_dashboard_asks_for_metrics_that_exist(rest: Rest) -> None:
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text())
    asked = set(re.findall(r"\b((?:mcpproxy|process)_\w+)", json.dumps(dashboard["panels"])))
    assert len(asked) > 10
    assert asked <= metrics(rest)
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
