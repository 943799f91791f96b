"""Which kinds of operation are there, and which call_tool variant stands for each?"""

from __future__ import annotations

from typing import Literal, get_args

OperationType = Literal["read", "write", "destructive"]
Variant = Literal["call_tool_read", "call_tool_write", "call_tool_destructive"]

OPERATIONS: tuple[OperationType, ...] = get_args(OperationType)

VARIANT_OF: dict[OperationType, Variant] = {
    "read": "call_tool_read",
    "write": "call_tool_write",
    "destructive": "call_tool_destructive",
}

OPERATION_OF: dict[str, OperationType] = {variant: operation for operation, variant in VARIANT_OF.items()}
"""The other way round, keyed by any tool name: what is not a variant is not in it."""
