"""How do other programs spell the same thing? The Go mcpproxy, Claude, Cursor, VS Code and their kin.

A key that only they know is not a mistake: it gets a quiet note and no guess at a misspelling.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from mcpproxy.config.models import Config, OAuth, Server

_UNUSED = "is not used here"
_NOT_ENFORCED = "is not enforced here"


class Dialect(Struct, frozen=True, kw_only=True):
    """Other spellings of one block's keys and values, and the keys that mean nothing to us."""

    same: dict[str, str] = field(default_factory=dict)
    """Another key for one of ours."""
    opposite: dict[str, str] = field(default_factory=dict)
    """A key that says the contrary of one of ours."""
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    """For a key of ours, other words for its values; None is as if the key were absent."""
    notes: dict[str, str] = field(default_factory=dict)
    """Known keys without a meaning here, with what to tell the reader."""

    def ours(self, key: str) -> str:
        """The name that we use for this key."""
        return self.same.get(key) or self.opposite.get(key) or key

    def value(self, key: str, value: Any) -> Any:
        """The value in our words."""
        if key in self.opposite and isinstance(value, bool):
            return not value
        words = self.values.get(self.ours(key), {})
        return words.get(value, value) if isinstance(value, str) else value

    def spellings(self, name: str) -> tuple[str, ...]:
        """Every key that means this one of ours."""
        return (name, *(key for key in (*self.same, *self.opposite) if self.ours(key) == name))


PLAIN: Final = Dialect()

DIALECTS: Final[dict[type, Dialect]] = {
    Config: Dialect(
        same={"servers": "mcpServers"},
        values={"log_level": {"warn": "warning", "trace": "debug"}},
        notes={
            "$schema": "",
            "data_dir": "is set with --data-dir or $MCPPROXY_DATA",
            "top_k": f"{_UNUSED}; see tools_limit",
            "logging": f"{_UNUSED}; see log_level",
            "activity_retention_days": f"{_UNUSED}; see activity.retention_days",
            "activity_max_records": f"{_UNUSED}; see activity.max_records",
            "activity_max_size_mb": f"{_UNUSED}; see activity.max_size_mb",
            "activity_max_response_size": f"{_UNUSED}; see activity.max_payload_bytes",
            "quarantine_enabled": f"{_UNUSED}; see mcpServers[].trust",
            "read_only_mode": f"{_NOT_ENFORCED}; hand out agent tokens with read access",
            "disable_management": f"{_NOT_ENFORCED}; managing needs the API key",
            "allow_server_add": f"{_NOT_ENFORCED}; adding a server needs the API key",
            "allow_server_remove": f"{_NOT_ENFORCED}; removing a server needs the API key",
            "docker_isolation": f"{_NOT_ENFORCED}; servers run as child processes",
            "tls": f"{_NOT_ENFORCED}; put a TLS proxy in front",
            "sensitive_data_detection": _NOT_ENFORCED,
            "output_sanitization": _NOT_ENFORCED,
            "environment": f"{_UNUSED}; a server gets a safe list of variables and its own env",
            "inputs": f"{_UNUSED}; write ${{env:NAME}} or ${{keyring:NAME}} for values that an editor asks for",
            **dict.fromkeys(
                "enable_tray enable_socket tray_endpoint debug_search max_result_size_chars enable_prompts "
                "aggregate_upstream_prompts check_server_repo docker_recovery registries registries_locked "
                "allow_private_registry_fetch features tokenizer enable_code_execution code_execution_timeout_ms "
                "code_execution_max_tool_calls code_execution_pool_size code_execution_max_parallel "
                "tool_response_session_risk_warning oauth_expiry_warning_hours activity_cleanup_interval_min "
                "telemetry security observability audit_log routing_mode profiles toon_output trusted_proxies "
                "health_check_interval tool_discovery_interval update_check globalShortcut preferences".split(),
                _UNUSED,
            ),
        },
    ),
    Server: Dialect(
        same={
            "type": "protocol",
            "transport": "protocol",
            "transportType": "protocol",
            "cwd": "working_dir",
            "serverUrl": "url",
            "httpUrl": "url",
            "trust_mode": "trust",
            "enabledTools": "enabled_tools",
            "includeTools": "enabled_tools",
            "disabledTools": "disabled_tools",
            "excludeTools": "disabled_tools",
        },
        opposite={"disabled": "enabled"},
        values={
            "protocol": {
                "": None,
                "auto": None,
                "local": "stdio",
                "streamable-http": "http",
                "streamable_http": "http",
                "streamableHttp": "http",
                "streamablehttp": "http",
            },
            "trust": {"": None, "auto": "first_use"},
        },
        notes={
            "isolation": f"{_NOT_ENFORCED}; the server runs as a child process",
            "timeout": f"{_UNUSED}; see call_tool_timeout",
            "envFile": "is not read; write the values in env, or ${env:NAME}",
            "skip_quarantine": f"{_UNUSED}; see trust",
            "auto_approve_tool_changes": f"{_UNUSED}; see trust",
            "tools": f"{_NOT_ENFORCED}; see enabled_tools",
            "auth": f"{_UNUSED}; see oauth",
            **dict.fromkeys(
                "created updated shared reconnect_on_use expose_prompts launcher_wait_timeout health_check_interval "
                "tool_discovery_interval exclude_disabled_tools toon_output source_registry_id annotation_overrides "
                "alwaysAllow autoApprove description icon gallery version dev headersHelper".split(),
                _UNUSED,
            ),
        },
    ),
    OAuth: Dialect(
        same={"clientId": "client_id", "clientSecret": "client_secret"},
        notes={
            "pkce_enabled": "is always on",
            "extra_params": _UNUSED,
            "callbackPort": f"{_UNUSED}; see redirect_uri",
        },
    ),
}
