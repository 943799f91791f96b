"""Is there something in this definition that a person should see before it is trusted?

Deterministic, offline, and weak by nature: a scan explains what it sees, and pins carry the weight.
"""

from mcpproxy.catalog.scan.finding import Finding, Severity, is_clean, worst
from mcpproxy.catalog.scan.rulebook import scan
from mcpproxy.catalog.scan.subject import Context

__all__ = ["Context", "Finding", "Severity", "is_clean", "scan", "worst"]
