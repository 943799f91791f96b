"""The way of one call: every stage in order, in one list, for every face."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcpproxy.activity.journal import RecordFailed
from mcpproxy.calls import after, before, records, result
from mcpproxy.calls.model import Reply
from mcpproxy.policy.verdict import Refusal

if TYPE_CHECKING:
    from mcpproxy.calls.house import House
    from mcpproxy.calls.model import Call

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

    async def run(self, call: Call) -> Reply:
        """Make one call; what it comes to is on record before this returns."""
        self.in_flight += 1
        try:
            refusal = await self._stages(call)
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupted(call))
            raise
        else:
            return await self._close(call, refusal)
        finally:
            self.in_flight -= 1

    async def _stages(self, call: Call) -> Refusal | None:
        for stage in STAGES:
            refusal = await stage(call, self._house)
            if refusal is not None:
                return refusal
        return None

    async def _close(self, call: Call, refusal: Refusal | None) -> Reply:
        try:
            await records.close_record(call, self._house, refusal)
        except RecordFailed as error:
            refusal = records.unrecorded(call, error)
        if refusal is not None:
            return Reply(result.refused(refusal), refusal)
        return Reply(call.result)

    async def _interrupted(self, call: Call) -> None:
        try:
            await records.close_interrupted(call, self._house)
        except RecordFailed:
            return  # whoever waited is gone; the journal itself has said that it cannot write
