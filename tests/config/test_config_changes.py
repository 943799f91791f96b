"""What a reload has to touch."""

from __future__ import annotations

from msgspec import structs

from mcpproxy.config.changes import compare
from mcpproxy.config.models import Config, IntentDeclaration, OutputValidation, Server


def servers(*names: str) -> tuple[Server, ...]:
    return tuple(Server(name=name, command="x") for name in names)


def test_equal_configurations_have_no_changes() -> None:
    changes = compare(Config(servers=servers("a")), Config(servers=servers("a")))
    assert not changes


def test_each_server_is_judged_alone() -> None:
    old = Config(servers=servers("same", "gone", "other"))
    other = Server(name="other", command="x", env={"A": "1"})
    new = Config(servers=(*servers("new", "same"), other))
    changes = compare(old, new)
    assert [each.name for each in changes.added] == ["new"]
    assert [each.name for each in changes.removed] == ["gone"]
    assert changes.changed == ((Server(name="other", command="x"), other),)
    assert changes.settings == ()


def test_the_order_of_servers_is_no_change() -> None:
    assert not compare(Config(servers=servers("a", "b")), Config(servers=servers("b", "a")))


def test_settings_are_named_by_their_key() -> None:
    new = Config(
        tools_limit=3,
        intent_declaration=IntentDeclaration(unannotated="destructive"),
        output_validation=OutputValidation(mode="off", max_depth=3),
    )
    assert compare(Config(), new).settings == (
        "tools_limit",
        "intent_declaration.unannotated",
        "output_validation.mode",
        "output_validation.max_depth",
    )


def test_only_listen_and_storage_need_a_restart() -> None:
    new = Config(listen="127.0.0.1:1", storage="postgresql://h/d", log_level="debug", max_sessions=1)
    assert compare(Config(), new).restart == ("listen", "storage")
    assert compare(Config(), structs.replace(Config(), api_key="k")).restart == ()
