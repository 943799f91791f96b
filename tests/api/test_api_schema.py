"""What schemathesis makes up from the OpenAPI document: no fault of ours, and no answer that is not documented."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.api.serving import Rest, serving
from tests.calls.proxy import KEY, echo

EXAMPLES = 8
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
ENDLESS = {"GET /api/v1/events"}


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with serving(tmp_path_factory.mktemp("fuzz") / "data", [echo()], log_level="error") as found:
        yield found


def operations(document: dict[str, Any]) -> list[Any]:
    schema = schemathesis.openapi.from_dict(document)
    return [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]


def test_the_document_is_one_that_generators_accept(rest: Rest) -> None:
    document = rest.ask("GET", "openapi.json").json()
    assert document["openapi"].startswith("3.1")
    found = operations(document)
    assert len({operation.definition.raw["operationId"] for operation in found}) == len(found) > 25
    references = set(_references(document))
    assert references
    assert not {name for name in references if name not in document["components"]["schemas"]}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].removeprefix("#/components/schemas/")
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_nothing_that_fits_or_misses_the_document_breaks_us(rest: Rest, mode: schemathesis.GenerationMode) -> None:
    document = rest.ask("GET", "openapi.json").json()
    tried = 0
    for operation in operations(document):
        if operation.label in ENDLESS:
            continue
        try:
            strategy = operation.as_strategy(generation_mode=mode)
        except Exception as error:  # an operation without parameters cannot be missed
            assert mode.is_negative, error
            continue
        tried += 1
        _try(rest, strategy)
        if "{name}" in operation.path and operation.method != "delete":  # and for a server that is there
            _try(rest, operation.as_strategy(generation_mode=mode, path_parameters={"name": "echo"}))
    assert tried >= 15
    assert rest.get("status")["version"]


def _try(rest: Rest, cases: st.SearchStrategy[Any]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def run(case: Any) -> None:
        if _starts_a_program(case):
            return
        answer = case.call(base_url=rest.url, headers={"X-API-Key": KEY})
        case.validate_response(answer, checks=CHECKS, headers={"X-API-Key": KEY})

    run()


def _starts_a_program(case: Any) -> bool:
    """What is made up must not be run on the machine that tests it."""
    return isinstance(case.body, dict) and bool(case.body.get("command"))
