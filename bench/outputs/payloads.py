"""What is checked: a list of orders as a shop's tool would answer it, in three sizes."""

from __future__ import annotations

import json
from typing import Any

SIZES = {"1 KB": 1_000, "10 KB": 10_000, "1 MB": 1_000_000}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "orders": {"type": "array", "items": {"$ref": "#/$defs/order"}},
        "next_page": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["orders", "next_page"],
    "additionalProperties": False,
    "$defs": {
        "order": {
            "type": "object",
            "properties": {
                "id": {"type": "integer", "minimum": 1},
                "customer": {"type": "string", "minLength": 1, "maxLength": 200},
                "status": {"enum": ["open", "paid", "sent", "returned"]},
                "total": {"type": "number", "minimum": 0},
                "tags": {"type": "array", "items": {"type": "string"}},
                "address": {
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                    "required": ["city"],
                },
            },
            "required": ["id", "customer", "status", "total"],
            "additionalProperties": False,
        }
    },
}


def conforming(size: int) -> bytes:
    """Write orders until the payload has about so many bytes."""
    orders: list[dict[str, Any]] = []
    length = 40
    while length < size:
        orders.append(_order(len(orders) + 1))
        length += len(json.dumps(orders[-1])) + 2
    return json.dumps({"orders": orders, "next_page": None}).encode()


def violating(size: int) -> bytes:
    """The same, with the last order's total written as text."""
    value = json.loads(conforming(size))
    value["orders"][-1]["total"] = "a lot"
    return json.dumps(value).encode()


def _order(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": f'Customer {number} of "The Corner Shop" [wholesale]',
        "status": ("open", "paid", "sent", "returned")[number % 4],
        "total": number * 1.25,
        "tags": ["gift", "express"],
        "address": {"street": f"{number} High Street", "city": "Springfield"},
    }
