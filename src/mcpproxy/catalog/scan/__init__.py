"""Is there something in this definition that a person should see before it is trusted?

Deterministic, offline, and weak by nature: a scan explains what it sees, and pins carry the weight.
`rulebook.scan` does it; `finding` says what comes out. The rules take a moment to load, so nothing is imported here.
"""
