"""The way of one call: every stage in order, in one list, for every face."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpproxy.activity.journal import RecordFailed
from mcpproxy.calls import after, before, records, result
from mcpproxy.calls.meter import Meter
from mcpproxy.calls.model import Reply, settled
from mcpproxy.policy.verdict import Refusal

if TYPE_CHECKING:
    from mcpproxy.activity.record import Status
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Call
    from mcpproxy.calls.tracing import Tracing

STAGES = (
    before.resolve,
    before.access,
    before.intent,
    before.hints,
    before.arguments,
    records.open_record,
    after.ask_upstream,
    after.read_result,
    after.check_output,
    after.cut_long_text,
    after.fit_to_caller,
)


class Pipeline:
    """Takes every call, whichever face it came by."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.in_flight = 0
        self.meter = Meter()
        self.tracing: Tracing | None = None

    def run(self, call: Call) -> Coroutine[Any, Any, Reply]:
        """Make one call; what it comes to is on record before this returns."""
        tracing = self.tracing
        return self._run(call) if tracing is None else tracing.call(call, self._run(call))

    async def _run(self, call: Call) -> Reply:
        self.in_flight += 1
        try:
            refusal = await self._stages(call)
        except asyncio.CancelledError:
            self.meter.add(call, self._house, "interrupted")
            await asyncio.shield(self._interrupted(call))
            raise
        else:
            return await self._close(call, refusal)
        finally:
            self.in_flight -= 1

    async def _stages(self, call: Call) -> Refusal | None:
        tracing, house = self.tracing, self._house
        for stage in STAGES:
            if tracing is None:
                outcome = stage(call, house)
                if outcome is None:
                    continue
            else:
                outcome = tracing.step(stage.__name__, partial(stage, call, house))
            refusal = await settled(outcome)
            if refusal is not None:
                return refusal
        return None

    async def _close(self, call: Call, refusal: Refusal | None) -> Reply:
        close, tracing = partial(records.close_record, call, self._house, refusal), self.tracing
        try:
            await (close() if tracing is None else tracing.step("close_record", close))
        except RecordFailed as error:
            refusal = records.unrecorded(call, error)
        self.meter.add(call, self._house, _status(call, refusal))
        if refusal is not None:
            return Reply(result.refused(refusal), refusal)
        return Reply(call.result)

    async def _interrupted(self, call: Call) -> None:
        try:
            await records.close_interrupted(call, self._house)
        except RecordFailed:
            return  # whoever waited is gone; the journal itself has said that it cannot write


def _status(call: Call, refusal: Refusal | None) -> Status:
    if refusal is not None:
        return records.status_of(refusal)
    return "error" if call.view is not None and call.view.is_error else "success"
