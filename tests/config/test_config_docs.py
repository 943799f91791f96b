"""docs/configuration.md says what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec import NODEFAULT, inspect

from mcpproxy.config.errors import ConfigError
from mcpproxy.config.load import parse
from mcpproxy.config.mask import Masker
from mcpproxy.config.models import Config, Server, plain
from mcpproxy.config.secrets import SecretMissing, expand
from mcpproxy.config.walk import bare

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
SAID_IN_WORDS = {"api_key": "generated", "require_mcp_auth": "by address", "name": "required"}


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def documented(kind: type, prefix: str = "") -> list[tuple[str, str]]:
    """Every key of a model, with its default as the page writes it."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    keys: list[tuple[str, str]] = []
    for field in info.fields:
        inner, key = bare(field.type), prefix + field.encode_name
        default = field.default if field.default is not NODEFAULT else None
        if field.default_factory is not NODEFAULT:
            default = field.default_factory()
        if isinstance(inner, inspect.StructType):
            keys += documented(inner.cls, f"{key}.")
        if not isinstance(inner, inspect.StructType) or default is None:
            written = "none" if default is None else f"`{json.dumps(plain(default))}`"
            keys.append((key, SAID_IN_WORDS.get(key, written)))
    return keys


@pytest.mark.parametrize(("key", "default"), [*documented(Config), *documented(Server)])
def test_every_key_stands_on_the_page_with_its_default(key: str, default: str) -> None:
    assert re.search(rf"^\| `{re.escape(key)}` \| {re.escape(default)} \| \S", PAGE, re.MULTILINE)


def test_the_page_names_no_key_that_does_not_exist() -> None:
    known = {key for key, _ in (*documented(Config), *documented(Server))}
    assert set(re.findall(r"^\| `([\w.]+)` \|", PAGE, re.MULTILINE)) == known


def test_the_examples_load_without_a_warning() -> None:
    examples = blocks("json")
    assert len(examples) >= 2
    for example in examples:
        assert parse(example.encode())[1] == ()


def test_the_errors_on_the_page_are_the_real_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(blocks("json broken")[0].encode())
    error = str(caught.value).replace("the configuration", "~/.mcpproxy/mcp_config.json", 1)
    assert blocks("text error") == [f"{error}\n"]
    assert blocks("text warning") == ["\n".join(caught.value.warnings) + "\n"]


def test_the_missing_secret_on_the_page_is_the_real_one() -> None:
    example = parse(blocks("json")[0].encode())[0].servers[1]
    with pytest.raises(SecretMissing) as caught:
        expand(example, Masker(), {})
    assert f"{caught.value}\n" in blocks("text")
