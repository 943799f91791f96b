"""What may the operator say? Every key, its range and its default stand here, and nowhere else."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Positive = Annotated[int, Meta(ge=1)]


class Duration(float):
    """Seconds. Written as a number of seconds or as text such as `500ms`, `3s`, `2m`, `1h`, `30d`."""


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
    client_secret: str | None = None
    scopes: tuple[str, ...] = ()
    client_metadata_url: str | None = None
    redirect_uri: str | None = None


class Server(Struct, frozen=True, kw_only=True):
    """One upstream: a command to run or a URL to reach."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
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

    listen: str = "127.0.0.1:8080"
    api_key: str = ""
    require_mcp_auth: bool | None = None
    storage: str = "sqlite"
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
    otel_endpoint: str | None = None
    servers: tuple[Server, ...] = ()
