"""One proxy for all tests of a module that do not get in each other's way."""

from collections.abc import Iterator

import pytest
from tests.api.serving import Rest, serving
from tests.calls.proxy import echo


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rest]:
    with serving(tmp_path_factory.mktemp("home") / "data", [echo(), echo("other")]) as found:
        yield found
