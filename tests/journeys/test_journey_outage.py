"""What is known of a server that is away? The tools that it last listed, marked so, even after a restart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.journeys.support import TINY, Proxy, Spec, serving


def server_at(script: Path) -> Spec:
    shutil.copy(TINY, script)
    spec: Spec = {"command": "python3", "args": ["-I", "-S", str(script)]}
    return spec


def only_server(proxy: Proxy) -> dict[str, Any]:
    (server,) = proxy.api("/servers")["servers"]
    assert isinstance(server, dict)
    return server


def test_the_last_known_tools_survive_a_restart_while_the_server_is_down(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    with serving(tmp_path / "home", {"away": server_at(script)}) as proxy:
        proxy.await_ready("away")
        assert (only_server(proxy)["tools"], only_server(proxy)["stale"]) == (1, False)
        proxy.stop()

        script.unlink()
        proxy.start()
        proxy.await_log("server 'away': the process exited with code 2.*No such file")
        server = only_server(proxy)
        assert server["state"] in ("backing_off", "connecting")
        assert (server["tools"], server["stale"]) == (1, True)

        server_at(script)
        proxy.await_ready("away", times=2)
        assert (only_server(proxy)["tools"], only_server(proxy)["stale"]) == (1, False)


def test_another_server_under_the_same_name_does_not_inherit_the_list(tmp_path: Path) -> None:
    with serving(tmp_path / "home", {"away": server_at(tmp_path / "one.py")}) as proxy:
        proxy.await_ready("away")
        proxy.stop()

        proxy.configure({"away": {"command": "python3", "args": ["-I", "-S", str(tmp_path / "two.py")]}})
        proxy.start()
        proxy.await_log("server 'away': the process exited with code 2")
        assert only_server(proxy)["tools"] == 0
