"""What loads, what does not, and what the reader is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.models import Config, Duration, is_loopback


def problems(document: bytes | dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(document)
    return [str(problem) for problem in caught.value.problems]


def server(**fields: Any) -> dict[str, Any]:
    return {"mcpServers": [{"name": "a", "command": "run", **fields}]}


def test_an_empty_object_means_the_defaults() -> None:
    config, warnings = parse({})
    assert config == Config()
    assert warnings == ()


@pytest.mark.parametrize("block", ["intent_declaration", "output_validation", "activity"])
@pytest.mark.parametrize("value", [{}, None])
def test_an_empty_block_weakens_nothing(block: str, value: object) -> None:
    assert parse({block: value})[0] == Config()


def test_strict_server_validation_stays_on_in_an_empty_intent_declaration() -> None:
    assert parse({"intent_declaration": {}})[0].intent_declaration.strict_server_validation is True


def test_every_key_is_read() -> None:
    document = {
        "listen": "0.0.0.0:9000",
        "api_key": "k" * 64,
        "require_mcp_auth": False,
        "storage": "postgresql://u:p@h/d",
        "tools_limit": 100,
        "tool_response_limit": 0,
        "call_tool_timeout": "3s",
        "call_tool_max_timeout": 60,
        "max_result_bytes": 1,
        "max_request_bytes": 2,
        "intent_declaration": {
            "strict_server_validation": False,
            "require_operation_type": True,
            "unannotated": "destructive",
            "refuse_read_on_modifying": False,
        },
        "output_validation": {
            "mode": "strict",
            "max_bytes": 1,
            "max_depth": 500,
            "missing_structured_content": "block",
            "guard_undeclared": True,
        },
        "activity": {
            "retention_days": 1,
            "max_records": 2,
            "max_size_mb": 3,
            "max_payload_bytes": 0,
            "on_failure": "allow",
            "durability": "power",
        },
        "retrieve_tools_max_tokens": 200,
        "trusted_hosts": ["proxy.example"],
        "max_sessions": 5,
        "log_level": "error",
        "otel_endpoint": "http://collector:4317",
        "mcpServers": [
            {
                "name": "a",
                "command": "run",
                "args": ["-x"],
                "env": {"A": "1"},
                "working_dir": "/tmp",
                "protocol": "stdio",
                "enabled": False,
                "quarantined": True,
                "trust": "manual",
                "enabled_tools": ["t"],
                "disabled_tools": ["u"],
                "call_tool_timeout": "1m",
            },
            {
                "name": "b",
                "url": "https://example.com/mcp",
                "headers": {"X-A": "1"},
                "protocol": "sse",
                "oauth": {
                    "client_id": "i",
                    "client_secret": "s",
                    "scopes": ["r"],
                    "client_metadata_url": "https://example.com/m",
                    "redirect_uri": "http://127.0.0.1:1/cb",
                },
            },
        ],
    }
    config, warnings = parse(document)
    assert warnings == ()
    default = Config()
    assert [name for name in config.__struct_fields__ if getattr(config, name) == getattr(default, name)] == []
    assert config.servers[0].call_tool_timeout == Duration(60)
    assert config.servers[1].oauth is not None and config.servers[1].oauth.scopes == ("r",)


def test_all_problems_are_named_at_once_with_path_value_and_choices() -> None:
    found = problems(
        {
            "tools_limit": 500,
            "output_validation": {"mode": "strickt", "max_depth": "64"},
            "mcpServers": [
                {"name": "a:b", "command": "x", "url": "http://h", "protocol": "htp"},
                {"command": "x", "args": "--flag"},
            ],
        }
    )
    assert found == [
        "tools_limit: 500 is not allowed; use a whole number from 1 to 100",
        'output_validation.mode: "strickt" is not allowed; use "off", "strict" or "warn" (did you mean "strict"?)',
        'output_validation.max_depth: "64" is not allowed; use a whole number from 1 to 500',
        "mcpServers[0].name: \"a:b\" is not allowed; use 1 to 64 characters without ':', '/' or control characters",
        'mcpServers[0].protocol: "htp" is not allowed; use "http", "sse" or "stdio" (did you mean "http"?)',
        "mcpServers[0]: it has both command and url; keep the one that starts or reaches the server",
        "mcpServers[1].args: *** is not a list; use [ … ]",
        "mcpServers[1].name: it is missing; use 1 to 64 characters without ':', '/' or control characters",
    ]


def test_the_path_of_a_keyed_server_names_its_key() -> None:
    assert problems({"mcpServers": {"git hub": {"command": "x", "protocol": "tcp"}}})[0].startswith(
        'mcpServers["git hub"].protocol: "tcp" is not allowed'
    )


def test_an_error_carries_the_warnings_too() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"tools_limit": 0, "toolslimit": 1})
    assert caught.value.warnings == ('toolslimit: unknown key, ignored; did you mean "tools_limit"?',)


@pytest.mark.parametrize(
    ("document", "warning"),
    [
        ({"tool_limit": 3}, 'tool_limit: unknown key, ignored; did you mean "tools_limit"?'),
        ({"toolsLimit": 3}, 'toolsLimit: unknown key, ignored; did you mean "tools_limit"?'),
        ({"activity": {"retention": 3}}, 'activity.retention: unknown key, ignored; did you mean "retention_days"?'),
        ({"zzz": 3}, "zzz: unknown key, ignored"),
        (server(comand="x"), 'mcpServers[0].comand: unknown key, ignored; did you mean "command"?'),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_the_nearest_known_one(document: dict[str, Any], warning: str) -> None:
    assert parse(document)[1] == (warning,)


def test_keys_that_people_use_as_comments_are_passed_over() -> None:
    assert parse({"_note": "x", "//": "y", "$schema": "z"})[1] == ()


@pytest.mark.parametrize("name", ["", "a:b", "a/b", "a\nb", "a\x7fb", "a\x85b", "x" * 65])
def test_a_server_name_that_would_break_tool_names_is_refused(name: str) -> None:
    assert "use 1 to 64 characters" in problems({"mcpServers": [{"name": name, "command": "x"}]})[0]
    assert "use 1 to 64 characters" in problems({"mcpServers": {name: {"command": "x"}}})[0]


@pytest.mark.parametrize("name", ["a", "x" * 64, "Mein Server é", "a.b-c_d"])
def test_a_usual_server_name_is_taken(name: str) -> None:
    assert parse({"mcpServers": [{"name": name, "command": "x"}]})[0].servers[0].name == name


def test_two_servers_of_one_name_are_refused_even_where_one_is_wrong_otherwise() -> None:
    found = problems({"mcpServers": [{"name": "a", "command": "x"}, {"name": "a", "command": 5}]})
    assert 'mcpServers[1].name: "a" is the name of mcpServers[0] too; rename one' in found


def test_keyed_servers_with_long_names_that_begin_alike_stay_two() -> None:
    names = ["x" * 62 + end for end in ("aa", "bb")]
    config, _ = parse({"mcpServers": {name: {"command": "run"} for name in names}})
    assert [each.name for each in config.servers] == names


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"url": "http://h"}, "it has both command and url"),
        ({"command": None}, "it has neither command nor url"),
        ({"command": ""}, "it has neither command nor url"),
        ({"protocol": "http"}, '"http" does not fit a command'),
        ({"protocol": "sse"}, '"sse" does not fit a command'),
        ({"command": None, "url": "http://h", "protocol": "stdio"}, '"stdio" does not fit a url'),
    ],
)
def test_command_url_and_protocol_must_fit(fields: dict[str, Any], problem: str) -> None:
    assert problem in problems(server(**fields))[0]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("500ms", 0.5),
        ("3s", 3),
        ("2m", 120),
        ("1h", 3600),
        ("30d", 2592000),
        ("2m0s", 120),
        ("1h1m1.5s", 3661.5),
        (7, 7),
        (0.25, 0.25),
    ],
)
def test_durations_are_text_or_seconds(written: object, seconds: float) -> None:
    assert parse({"call_tool_timeout": written})[0].call_tool_timeout == seconds


@pytest.mark.parametrize(
    "written", [0, -1, "0s", "", "2", "2 m", "2mx", "2m 3s", "m", "-2m", True, [], "99999999999d", 1e300]
)
def test_what_is_no_duration_is_refused(written: object) -> None:
    assert "use text such as 500ms" in problems({"call_tool_timeout": written})[0]


@pytest.mark.parametrize("text", ["500ms", "3s", "2m", "1h", "30d", "90s", "1500ms"])
def test_a_duration_is_written_as_it_was_read(text: str) -> None:
    read = Duration.read(text)
    assert read is not None and read.text == text


@pytest.mark.parametrize(
    "listen", ["", "127.0.0.1:0", "localhost:80", "[::1]:8080", "0.0.0.0:65535", "my-host.local:1"]
)
def test_listen_takes_host_and_port(listen: str) -> None:
    assert parse({"listen": listen}) == (Config(listen=listen), ())


@pytest.mark.parametrize("listen", ["8080", "host", "host:", "host:99999", "http://h:80", "::1:80", "*:80", "h:80/x"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    assert "use host:port" in problems({"listen": listen})[0]


def test_a_port_alone_means_loopback_and_says_so() -> None:
    config, warnings = parse({"listen": ":8080"})
    assert config.listen == "127.0.0.1:8080"
    assert warnings[0].startswith('listen: ":8080" is taken as "127.0.0.1:8080", this machine only')


@pytest.mark.parametrize(
    ("listen", "said", "required"),
    [
        ("127.0.0.1:1", None, False),
        ("127.9.9.9:1", None, False),
        ("localhost:1", None, False),
        ("[::1]:1", None, False),
        ("", None, False),
        ("0.0.0.0:1", None, True),
        ("[::]:1", None, True),
        ("10.0.0.1:1", None, True),
        ("proxy.example:1", None, True),
        ("0.0.0.0:1", False, False),
        ("127.0.0.1:1", True, True),
    ],
)
def test_mcp_needs_a_key_where_others_can_reach_it(listen: str, said: bool | None, required: bool) -> None:
    assert Config(listen=listen, require_mcp_auth=said).mcp_auth_required is required


def test_a_host_that_only_looks_local_is_not_loopback() -> None:
    assert not is_loopback("127.0.0.1.evil.example:80")
    assert not is_loopback("localhost.evil.example:80")


@pytest.mark.parametrize("value", [True, 1.5, "15", [15], 0, 101, 10**30])
def test_a_number_key_takes_whole_numbers_in_range_only(value: object) -> None:
    assert "use a whole number from 1 to 100" in problems({"tools_limit": value})[0]


@pytest.mark.parametrize("value", ["true", 1, 0, []])
def test_a_switch_takes_true_and_false_only(value: object) -> None:
    assert "use true or false" in problems(server(enabled=value))[0]


@pytest.mark.parametrize("storage", ["sqlite", "postgresql://u:p@h/d", "postgres://h/d", "postgresql+psycopg://h/d"])
def test_storage_takes_sqlite_and_postgresql(storage: str) -> None:
    assert parse({"storage": storage})[0].storage == storage


@pytest.mark.parametrize("storage", ["", "mysql://h/d", "postgresql://", "sqlite3"])
def test_other_storage_is_refused(storage: str) -> None:
    assert 'use "sqlite" or "postgresql://' in problems({"storage": storage})[0]


@pytest.mark.parametrize("url", ["ftp://h/x", "example.com", "http://", "https://h:99999/", "https://h/a b", "//h/x"])
def test_what_is_no_web_address_is_refused(url: str) -> None:
    assert "use an address such as" in problems({"mcpServers": [{"name": "a", "url": url}]})[0]


def test_a_url_that_waits_for_a_reference_is_taken() -> None:
    assert parse({"mcpServers": [{"name": "a", "url": "${env:MCP_URL}"}]})[0].servers[0].url == "${env:MCP_URL}"


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"command": "a\0b"}, "mcpServers[0].command"),
        ({"args": ["a\0b"]}, "mcpServers[0].args[0]"),
        ({"env": {"A": "b\0"}}, 'mcpServers[0].env["A"]'),
        ({"env": {"": "b"}}, 'mcpServers[0].env[""]'),
        ({"env": {"A": 5}}, 'mcpServers[0].env["A"]'),
        ({"headers": {"X": "a\r\nEvil: 1"}}, 'mcpServers[0].headers["X"]'),
        ({"headers": {"X Y": "a"}}, 'mcpServers[0].headers["X Y"]'),
        ({"working_dir": 5}, "mcpServers[0].working_dir"),
    ],
)
def test_what_no_process_or_request_can_carry_is_refused(fields: dict[str, Any], where: str) -> None:
    assert problems(server(**fields))[0].startswith(f"{where}: ")


@pytest.mark.parametrize(
    "document",
    [
        {"api_key": "canary secret"},
        {"storage": "mysql://u:canary@h/d"},
        server(env={"A": ["canary"]}),
        server(env={"TOKEN=canary": ""}),
        server(env="TOKEN=canary"),
        server(args="--token canary"),
        server(args=["canary\0"]),
        server(headers={"A": "canary\n"}),
        {"mcpServers": [{"name": "a", "url": "ftp://u:canary@h/?token=canary"}]},
        {"mcpServers": ["npx --token canary"]},
        {"mcpServers": "canary"},
        {"mcpServers": [{"name": "a", "url": "http://h", "oauth": {"client_secret": ["canary"], "scopes": "canary"}}]},
    ],
)
def test_no_error_shows_a_secret(document: dict[str, Any]) -> None:
    assert "canary" not in "\n".join(problems(document))


def test_an_error_is_one_printable_line_whatever_the_value_holds() -> None:
    (line,) = problems({"log_level": "\x1b[31m\n\u202e" + "x" * 500})
    assert line.isprintable() and len(line) < 200


def test_settings_without_effect_are_pointed_out() -> None:
    _, warnings = parse(
        {
            "mcpServers": [
                {"name": "a", "command": "x", "headers": {"X": "1"}},
                {"name": "b", "url": "http://h", "args": ["1"], "env": {}},
            ]
        }
    )
    assert warnings == (
        "mcpServers[0].headers: has no effect on a server with a command",
        "mcpServers[1].args: has no effect on a server with a url",
    )


def test_a_timeout_above_the_greatest_is_pointed_out() -> None:
    _, warnings = parse({"call_tool_timeout": "1h", **server(call_tool_timeout="2h")})
    assert [text.split(";")[0] for text in warnings] == [
        "call_tool_max_timeout: is 30m, shorter than the 1h of call_tool_timeout",
        "call_tool_max_timeout: is 30m, shorter than the 2h of call_tool_timeout of server 'a'",
    ]


def test_bytes_and_dict_say_the_same() -> None:
    document = server(env={"A": "1"})
    assert parse(json.dumps(document).encode()) == parse(document)
