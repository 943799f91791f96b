"""Which other words say the same about a tool? A small table of our own, for what tools and people call differently."""

from __future__ import annotations

from functools import lru_cache

from mcpproxy.catalog.search.words import stem

WEIGHT = 0.4
"""What a synonym counts beside the word itself."""

_GROUPS = """
repo repository | db database | folder directory dir | doc document file | config configuration setting preference
msg message | image picture photo img | delete remove erase | find search lookup | create add make new
show list display view | fetch retrieve get | email mail | movie film | song track music | price cost quote
weather forecast | user account person | url link website webpage | execute run launch start
update edit modify change | ticket issue bug | book reserve booking reservation | trip travel journey
location place position | chart graph plot diagram | schedule calendar event meeting appointment
job career employment vacancy | news article headline | recipe dish meal | translate translation
summary summarize summarise | convert transform | hotel accommodation lodging | flight airline
buy purchase order | customer client | directions route navigation | org organization organisation company
auth authentication login | env environment | app application | info information detail | stats statistics metrics
param parameter argument | char character letter | num number count | avg average mean | max maximum | min minimum
error exception failure | log logs journal | commit revision | branch fork | screenshot capture | browser web
note memo | task todo | team group | video clip | audio sound voice | spreadsheet excel sheet workbook
slide presentation powerpoint | temperature climate | currency money exchange | phone telephone
picture drawing illustration | store shop market | doctor physician | medicine drug
""".replace("\n", "|")


def synonyms(word: str) -> frozenset[str]:
    """The stems that mean nearly what this stem means."""
    return _table().get(word, frozenset())


@lru_cache(maxsize=1)
def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in _GROUPS.split("|"):
        stems = {stem(word) for word in group.split()}
        for one in stems:
            found.setdefault(one, set()).update(stems - {one})
    return {one: frozenset(others) for one, others in found.items()}
