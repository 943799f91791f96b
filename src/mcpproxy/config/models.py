"""What may the operator say? Every key, its range and its default stand here, and nowhere else."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, json

# A mark says what a text must look like (`form`, see forms.py) and which part of it is secret (`secret`, see sniff.py).
Secret = Annotated[str, Meta(extra={"secret": "whole"})]
Key = Annotated[str, Meta(extra={"secret": "whole", "form": "key"})]
Url = Annotated[str, Meta(extra={"secret": "url", "form": "url"})]
Storage = Annotated[str, Meta(extra={"secret": "url", "form": "storage"})]
Listen = Annotated[str, Meta(extra={"form": "listen"})]
ServerName = Annotated[str, Meta(extra={"form": "server_name"})]
Argument = Annotated[str, Meta(extra={"secret": "args"})]
# A refused name is hidden too: it may be "TOKEN=abc".
EnvName = Annotated[str, Meta(extra={"secret": "whole", "form": "env_name"})]
EnvValue = Annotated[str, Meta(extra={"secret": "env"})]
HeaderName = Annotated[str, Meta(extra={"form": "header_name"})]
HeaderValue = Annotated[str, Meta(extra={"secret": "header", "form": "header_value"})]
Positive = Annotated[int, Meta(ge=1)]

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h|d)")
_LONGEST = 10 * 365 * 86_400


class Duration(float):
    """Seconds. Written as a number of seconds or as text such as `500ms`, `3s`, `2m`, `1h`, `30d`, `1m30s`."""

    @classmethod
    def read(cls, value: object) -> Duration | None:
        """The duration that a number or text means, or None where it means none above zero."""
        seconds = _seconds(value)
        return cls(seconds) if math.isfinite(seconds) and 0 < seconds <= _LONGEST else None

    @property
    def text(self) -> str:
        """The shortest usual spelling, such as `2m`."""
        for unit in ("d", "h", "m", "s", "ms"):
            count = self / _UNITS[unit]
            if count >= 1 and math.isclose(count, round(count), rel_tol=1e-12):
                return f"{round(count)}{unit}"
        return f"{float(self):.9f}".rstrip("0").rstrip(".") + "s"


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    if isinstance(value, str):
        # The Go mcpproxy writes `2m0s`, so parts add up.
        if not re.fullmatch(f"(?:{_PART.pattern})+", value):
            return math.nan
        return math.fsum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))
    return float(value) if abs(value) <= _LONGEST else math.inf


class IntentDeclaration(Struct, frozen=True, kw_only=True):
    """How strictly a call's declared intent is held against itself and the server's annotations."""

    strict_server_validation: bool = True
    require_operation_type: bool = False
    unannotated: Literal["trust", "destructive"] = "trust"
    refuse_read_on_modifying: bool = True


class OutputValidation(Struct, frozen=True, kw_only=True):
    """What happens to a result that breaks the schema its tool declared."""

    mode: Literal["off", "warn", "strict"] = "warn"
    max_bytes: Positive = 5_242_880
    # Past about 1,000 levels the decoder itself gives up; 500 leaves room on every stack.
    max_depth: Annotated[int, Meta(ge=1, le=500)] = 64
    missing_structured_content: Literal["allow", "block"] = "allow"
    guard_undeclared: bool = False


class Activity(Struct, frozen=True, kw_only=True):
    """How long and how safely the record of what happened is kept."""

    retention_days: Positive = 90
    max_records: Positive = 1_000_000
    max_size_mb: Positive = 1024
    max_payload_bytes: Annotated[int, Meta(ge=0)] = 65_536
    on_failure: Literal["refuse", "allow"] = "refuse"
    durability: Literal["process", "power"] = "process"


class OAuth(Struct, frozen=True, kw_only=True):
    """How to log in to one HTTP upstream. Everything is discovered where it is not given."""

    client_id: str | None = None
    client_secret: Secret | None = None
    scopes: tuple[str, ...] = ()
    client_metadata_url: Url | None = None
    redirect_uri: Url | None = None


class Server(Struct, frozen=True, kw_only=True):
    """One upstream: a command to run or a URL to reach."""

    name: ServerName
    command: Argument | None = None
    args: tuple[Argument, ...] = ()
    env: dict[EnvName, EnvValue] = field(default_factory=dict)
    working_dir: str | None = None
    url: Url | None = None
    headers: dict[HeaderName, HeaderValue] = field(default_factory=dict)
    protocol: Literal["stdio", "http", "sse"] | None = None
    enabled: bool = True
    quarantined: bool = False
    trust: Literal["first_use", "manual", "scan"] = "first_use"
    enabled_tools: tuple[str, ...] | None = None
    disabled_tools: tuple[str, ...] = ()
    call_tool_timeout: Duration | None = None
    oauth: OAuth | None = None


class Config(Struct, frozen=True, kw_only=True, rename={"servers": "mcpServers"}):
    """The whole configuration file."""

    listen: Listen = "127.0.0.1:8080"
    api_key: Key = ""
    require_mcp_auth: bool | None = None
    storage: Storage = "sqlite"
    tools_limit: Annotated[int, Meta(ge=1, le=100)] = 15
    tool_response_limit: Annotated[int, Meta(ge=0)] = 20_000
    call_tool_timeout: Duration = Duration(120)
    call_tool_max_timeout: Duration = Duration(1800)
    max_result_bytes: Positive = 33_554_432
    max_request_bytes: Positive = 4_194_304
    intent_declaration: IntentDeclaration = field(default_factory=IntentDeclaration)
    output_validation: OutputValidation = field(default_factory=OutputValidation)
    activity: Activity = field(default_factory=Activity)
    retrieve_tools_max_tokens: Annotated[int, Meta(ge=200)] = 4000
    trusted_hosts: tuple[str, ...] = ()
    max_sessions: Positive = 10_000
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    otel_endpoint: Url | None = None
    servers: tuple[Server, ...] = ()

    @property
    def mcp_auth_required(self) -> bool:
        """Whether /mcp needs a key: as the operator said, else only where others than this machine can reach it."""
        return not is_loopback(self.listen) if self.require_mcp_auth is None else self.require_mcp_auth


@lru_cache(maxsize=16)
def is_loopback(listen: str) -> bool:
    """Whether only this machine can reach the address; true for `""`, which is stdio."""
    import ipaddress  # only some commands ask

    host = listen.rpartition(":")[0].strip("[]").lower()
    if not listen or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def plain(value: Any) -> Any:
    """The value as plain JSON values, durations as text."""
    return json.decode(json.encode(value, enc_hook=lambda item: item.text))
