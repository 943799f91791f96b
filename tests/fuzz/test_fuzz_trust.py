"""Quarantine, approval, changing tools, declared intent and reloads in any order: every call gets the verdict that the
contract says, and leaves the records that it says.

Runs some hundred steps; FUZZ_MACHINES=500 makes it a long session.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.fuzz.trust_model import HINTS, OPERATIONS, Definition, Expected, Model, Settings
from tests.fuzz.trust_proxy import CALLERS, FACES, Call, TrustProxy, trust_proxy

from mcpproxy.upstream import watch

MACHINES = int(os.environ.get("FUZZ_MACHINES", "8"))
STEPS = 30
SESSION = settings(
    max_examples=MACHINES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    derandomize="FUZZ_MACHINES" not in os.environ,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)

NAMES = ("alpha", "beta", "amber")
REJECTED = {"UNKNOWN_TOOL", "UNKNOWN_SERVER", "INVALID_ARGUMENTS"}
DOWN = {"UPSTREAM_UNAVAILABLE"}

names = st.sampled_from(NAMES)
definitions = st.builds(
    Definition,
    st.sampled_from((0, 0, 1, 1, 2)),
    st.sampled_from(range(len(HINTS))),
    st.sampled_from(("x", "x", "callback")),
)
trusts = st.sampled_from(("first_use", "manual", "scan", "scan"))
ENTRY = {
    "trust": trusts,
    "quarantined": st.sampled_from((False, False, True)),
    "disabled_tools": st.lists(names, unique=True, max_size=1).map(tuple),
}
DECISIONS = (("approve",), ("reject",), ("reject", "approve"))
kinds = st.sampled_from(OPERATIONS)
sensitivities = st.sampled_from(("public", "private", "secret"))
reasons = st.sampled_from(("because", "x" * 1000, "é" * 1001))
intents = st.fixed_dictionaries(
    {},
    optional={
        "operation_type": st.sampled_from((*OPERATIONS, "nonsense")),
        "data_sensitivity": sensitivities,
        "reason": reasons,
        "surprise": st.just(1),
    },
)
nested: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries({}, optional={"intent": intents | st.just("read")})
flat: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {}, optional={"intent_data_sensitivity": sensitivities, "intent_reason": reasons}
)
both: st.SearchStrategy[dict[str, Any]] = st.tuples(nested, flat).map(lambda two: {**two[0], **two[1]})
WRONG = {"operation_type": "write", "data_sensitivity": "secret", "reason": "x" * 1001, "surprise": 1}
several_faults = st.sets(st.sampled_from(list(WRONG)), min_size=2).map(
    lambda keys: {"intent": {key: WRONG[key] for key in keys}}
)


class Machine(RuleBasedStateMachine):
    """One server's life, in the proxy and in the model."""

    proxy: TrustProxy
    steps = 0
    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.proxy.name = ""

    @initialize(tools=st.dictionaries(names, definitions, min_size=1), trust=trusts, quarantined=ENTRY["quarantined"])
    def begin(self, tools: dict[str, Definition], trust: str, quarantined: bool) -> None:
        self.model = Model(tools=tools, trust=trust, quarantined=quarantined)
        self._configure()
        self.proxy.add(tools, trust=trust, quarantined=quarantined)
        self._settle()

    def teardown(self) -> None:
        if self.proxy.name:
            self.proxy.remove()

    def _settle(self) -> None:
        self.proxy.settle(self.model.running)
        self.model.listed()

    def _configure(self) -> None:
        self.proxy.rest.patch("config", {"intent_declaration": vars(self.model.settings)})

    # What the server does.

    @rule(changes=st.dictionaries(names, definitions | st.none(), min_size=1))
    def redefine(self, changes: dict[str, Definition | None]) -> None:
        tools: dict[str, Definition | None] = {**self.model.tools, **changes}
        self.model.tools = {name: definition for name, definition in tools.items() if definition is not None}
        self.proxy.show(self.model.tools)
        self._settle()

    @rule(name=names, definition=definitions, kind=kinds)
    def call_while_it_restarts(self, name: str, definition: Definition, kind: str) -> None:
        self.model.tools = {**self.model.tools, name: definition}
        with self.proxy.unheard():
            self.proxy.show(self.model.tools)
            self.proxy.rest.post(f"servers/{self.proxy.name}/restart")
        (found,) = self.proxy.call([Call("modern", "everybody", kind, name, {})])
        self._settle()
        # It may be refused for what was known before, but made only if that is right now, too.
        expected = self.model.call(name, kind, CALLERS["everybody"], {})
        assert found.code is not None or expected.code is None, (found, self.model)

    @rule(name=names, words=st.sampled_from((0, 1)))
    def reword(self, name: str, words: int) -> None:
        if name in self.model.tools:
            self.redefine({name: self.model.tools[name]._replace(description=words)})

    # What the operator does.

    @rule()
    def restart(self) -> None:
        self.proxy.rest.post(f"servers/{self.proxy.name}/restart")
        self._settle()

    @rule(decisions=st.dictionaries(names, st.sampled_from(DECISIONS), min_size=1))
    def decide(self, decisions: dict[str, tuple[str, ...]]) -> None:
        shown = self.proxy.waiting()
        for name, decision in ((name, one) for name, several in decisions.items() for one in several):
            version = shown[name]["version"] if name in shown else "0" * 64
            assert self.proxy.decide(decision, name, version) == (200 if name in shown else 404)
            if name in shown:
                (self.model.approve if decision == "approve" else self.model.reject)(name)

    @rule(name=names, decision=st.sampled_from(("approve", "reject")))
    def decide_about_what_was_never_shown(self, name: str, decision: str) -> None:
        assert self.proxy.decide(decision, name, "0" * 64) == (409 if name in self.model.waiting else 404)

    @rule()
    def approve_all(self) -> None:
        version = self.proxy.rest.get("tools/waiting")["servers"].get(self.proxy.name, "none")
        open_ones = [name for name, state in self.model.waiting.items() if state != "rejected"]
        assert self.proxy.decide("approve", None, version) == (200 if open_ones else 404)
        self.model.approve_all()

    @rule(action=st.sampled_from(("enable", "enable", "disable", "quarantine", "approve", "approve")))
    def switch(self, action: str) -> None:
        self.proxy.rest.post(f"servers/{self.proxy.name}/{action}")
        if action == "approve":
            self.model.approve_server()
        elif action == "quarantine":
            self.model.quarantined = True
        else:
            self.model.enabled = action == "enable"
        self._settle()

    @rule(entry=st.fixed_dictionaries({}, optional=ENTRY))
    def change_the_entry(self, entry: dict[str, Any]) -> None:
        for key, value in entry.items():
            setattr(self.model, key, value)
        self.proxy.rest.patch(f"servers/{self.proxy.name}", entry)
        self._settle()

    @rule(
        wanted=st.builds(
            Settings, st.booleans(), st.booleans(), st.sampled_from(("trust", "destructive")), st.booleans()
        )
    )
    def reload(self, wanted: Settings) -> None:
        self.model.settings = wanted
        self._configure()

    @rule()
    def break_the_file(self) -> None:
        self.proxy.break_the_file()

    # What callers do.

    @rule(
        face=st.sampled_from(FACES),
        name=names,
        declared=st.lists(st.tuples(kinds, nested | several_faults), min_size=10),
    )
    def declare(self, face: str, name: str, declared: list[tuple[str, dict[str, Any]]]) -> None:
        name = min(self.model.visible, default=name)
        self._make([Call(face, "everybody", kind, name, one) for kind, one in declared])

    @rule(face=st.sampled_from(FACES[:2]), name=names, declared=st.lists(st.tuples(kinds, both), min_size=10))
    def declare_twice(self, face: str, name: str, declared: list[tuple[str, dict[str, Any]]]) -> None:
        self._make([Call(face, "everybody", kind, name, one) for kind, one in declared])

    @invariant()
    def every_call_gets_the_verdict_of_the_contract(self) -> None:
        if not self.proxy.name:
            return
        Machine.steps += 1
        assert {name: one["state"] for name, one in self.proxy.waiting().items()} == self.model.waiting
        assert self.proxy.visible() == self.model.visible
        faces, some = itertools.cycle(FACES), itertools.cycle(OPERATIONS)
        every = [Call(next(faces), "everybody", kind, name, {}) for name in NAMES for kind in OPERATIONS]
        scoped = [Call(next(faces), caller, next(some), name, {}) for name in NAMES for caller in ("reader", "half")]
        self._make([*every, *scoped])

    def _make(self, calls: list[Call]) -> None:
        Machine.calls += len(calls)
        for call, found in zip(calls, self.proxy.call(calls), strict=True):
            expected = self.model.call(call.tool, call.operation, CALLERS[call.caller], call.declared)
            assert found.code == expected.code, (call, found, self.model)
            assert found.records == _records(expected), (call, found, self.model)
            assert found.warned == expected.warned, (call, found, self.model)
            assert found.operation == {_recorded(call, expected.code)}, (call, found, self.model)
            assert expected.code is not None or found.text == f"called {call.tool} of {self.proxy.name}"


def _records(expected: Expected) -> list[tuple[str, str]]:
    """Type and status of every record that a call should leave."""
    if expected.code is None:
        return [*([("policy_decision", "warning")] if expected.warned else []), ("tool_call", "success")]
    if expected.code in REJECTED:
        return [("tool_call", "rejected")]
    if expected.code in DOWN:
        return [("tool_call", "error")]
    return [("policy_decision", "blocked"), ("tool_call", "blocked")]


def _recorded(call: Call, code: str | None) -> str:
    """The operation on record: the declared one where it was read, else that of the variant."""
    if code in REJECTED | DOWN | {"NOT_APPROVED", "ACCESS_DENIED"}:
        return call.operation  # refused before anybody read the declaration
    intent = call.declared.get("intent")
    said = intent.get("operation_type") if isinstance(intent, dict) else None
    return said if said in OPERATIONS else call.operation


@pytest.fixture
def proxy(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrustProxy]:
    monkeypatch.setattr(watch, "RELIST_PAUSE", 0.01)
    monkeypatch.setattr(watch, "LONGEST_RELIST_PAUSE", 0.02)
    with trust_proxy(tmp_path_factory.mktemp("trust")) as started:
        yield started


def test_no_order_of_events_gets_a_call_another_verdict_than_the_contract_says(proxy: TrustProxy) -> None:
    Machine.proxy = proxy
    run_state_machine_as_test(Machine, settings=SESSION)
    print(f"{Machine.steps} steps, {Machine.calls} calls")
    assert Machine.steps > MACHINES * STEPS / 2
