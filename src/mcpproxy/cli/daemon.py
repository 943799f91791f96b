"""How is the running daemon asked? HTTP over its unix socket, else over its address with the API key."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Raw, Struct

import mcpproxy
from mcpproxy.cli.errors import DATABASE, FAILED, NO_DAEMON, PERMISSION, USAGE, Failure
from mcpproxy.local import socket_path

if TYPE_CHECKING:
    from mcpproxy.config.models import Config

PREFIX: Final = "/api/v1"
_CONNECT_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 60.0
_HEADERS: Final = {
    "Host": "localhost",
    "User-Agent": f"mcpproxy/{mcpproxy.__version__}",
    "X-MCPProxy-Client": "cli",  # so that records say by which face a call came
}
_EXITS: Final = {401: PERMISSION, 422: USAGE}


class Refused(Failure):
    """The daemon answered, and said no."""

    def __init__(self, status: int, exit_code: int, message: str, *, code: str) -> None:
        super().__init__(exit_code, message, _HINTS.get(code, ""), code=code)
        self.status = status


_HINTS: Final = {
    "UNAUTHORIZED": "Check api_key in the configuration, or $MCPPROXY_API_KEY; the daemon must have the same.",
    "BUSY": "Try again in a moment.",
}


class _Problem(Struct):
    code: str = "ERROR"
    message: str = ""


class _Envelope(Struct):
    success: bool
    data: Raw = Raw(b"null")
    error: _Problem | None = None


class Daemon:
    """A running daemon, asked one question at a time, each on a connection of its own."""

    def __init__(self, where: str, connect: Callable[[], socket.socket], headers: Mapping[str, str]) -> None:
        self.where = where
        self._connect = connect
        self._headers = {**_HEADERS, **headers}

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Raw:
        """The `data` of an answer, as it came."""
        return self._ask("GET", path, query=query)

    def post(self, path: str, body: Any = None) -> Raw:
        """Have something done."""
        return self._ask("POST", path, body=body)

    def delete(self, path: str) -> Raw:
        """Have something taken away."""
        return self._ask("DELETE", path)

    def _ask(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None) -> Raw:
        with self.open(method, path, query=query, body=body) as response:
            return data_of(response.read())

    @contextlib.contextmanager
    def open(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = _ANSWER_SECONDS,
    ) -> Iterator[http.client.HTTPResponse]:
        """A good answer as it comes in, to be read within the block; leaving it early ends what the daemon does."""
        connection = http.client.HTTPConnection("localhost")
        try:
            connection.sock = self._connect()
            connection.sock.settimeout(timeout)
            given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
            target = PREFIX + path + (f"?{urlencode(given)}" if given else "")
            data = body if isinstance(body, bytes) else msgspec.json.encode(body) if body is not None else None
            kind = {"Content-Type": "application/json"} if data is not None else {}
            connection.request(method, target, data, {**self._headers, **kind, **(headers or {})})
            response = connection.getresponse()
            if response.status >= 400:
                raise _refused(response.status, path, response.read())
            yield response
        except TimeoutError as error:
            raise self._lost(f"it did not answer within {timeout:g} s") from error
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(str(error) or type(error).__name__) from error
        finally:
            connection.close()

    def _lost(self, why: str) -> Failure:
        return Failure(NO_DAEMON, f"the daemon at {self.where} was lost: {why}.", "See: mcpproxy status")


def data_of(body: bytes) -> Raw:
    """The `data` in an envelope."""
    try:
        return msgspec.json.decode(body, type=_Envelope).data
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Failure(FAILED, f"the daemon's answer cannot be read: {error}.") from None


def refusal_in(body: bytes) -> Refused:
    """The refusal in an envelope that came as an event."""
    return _refused(500, "", body)


def segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _refused(status: int, path: str, body: bytes) -> Refused:
    try:
        problem = msgspec.json.decode(body, type=_Envelope).error or _Problem()
    except (msgspec.MsgspecError, RecursionError):
        problem = _Problem(message=body[:200].decode(errors="replace"))
    exit_code = _EXITS.get(status, FAILED)
    if problem.code == "FORBIDDEN":
        exit_code = PERMISSION
    if status == 503 and path.startswith("/activity"):
        exit_code = DATABASE
    return Refused(status, exit_code, problem.message or f"the daemon answered with {status}.", code=problem.code)


# Where is it?


def at_socket(data_dir: Path) -> Daemon | None:
    """The daemon of a data directory, by the socket that only its owner can open."""
    path = str(socket_path(data_dir))

    def connect() -> socket.socket:
        return _connected(socket.AF_UNIX, path)

    return Daemon(path, connect, {}) if _answers(connect) else None


def at_address(config: Callable[[], Config]) -> Daemon | None:
    """The daemon at the address in the configuration, if that is one, and of this user or root."""
    settings = config()
    host, _, port = settings.listen.rpartition(":")
    if not port.isdigit() or port == "0" or not settings.api_key:
        return None
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))  # noqa: S104
    family = socket.AF_INET6 if ":" in host else socket.AF_INET

    def connect() -> socket.socket:
        return _connected(family, (host, int(port)))

    # The key opens everything: it goes to nobody who only happens to have the port.
    if not _answers(connect) or not _is_ours(int(port)) or not _is_mcpproxy(connect):
        return None
    return Daemon(f"http://{settings.listen}", connect, {"X-API-Key": settings.api_key})


def _connected(family: socket.AddressFamily, address: Any) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.settimeout(_CONNECT_SECONDS)
    try:
        opened.connect(address)
    except BaseException:
        opened.close()
        raise
    return opened


def _answers(connect: Callable[[], socket.socket]) -> bool:
    try:
        connect().close()
    except OSError:  # not there, nobody behind it, or a path that is too long for a socket
        return False
    return True


def _is_mcpproxy(connect: Callable[[], socket.socket]) -> bool:
    connection = http.client.HTTPConnection("localhost")
    try:
        connection.sock = connect()
        connection.request("GET", "/healthz", headers=_HEADERS)
        health = msgspec.json.decode(connection.getresponse().read(10_000))
        return isinstance(health, dict) and health.get("status") == "ok" and "version" in health
    except (OSError, http.client.HTTPException, msgspec.MsgspecError, RecursionError):
        return False
    finally:
        connection.close()


def _is_ours(port: int) -> bool:
    """Whether nobody but this user or root listens on the port, as far as the system tells."""
    sign = f":{port:04X}"
    owners = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[1].endswith(sign) and fields[3] == "0A":  # a socket that listens
                    owners.add(int(fields[7]))
    return owners <= {0, os.getuid()}
