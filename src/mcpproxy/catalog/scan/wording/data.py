"""Is the text after the user's data? Secrets and files that it asks for, and places that it sends things to."""

from __future__ import annotations

from typing import Final

from mcpproxy.catalog.scan.phrases import Wording

_SECRETS: Final = "asks for secrets or private files"
_MOVES: Final = "moves data to somewhere the user did not name"
_ANSWERS: Final = "puts words into the model's answers or code"
_RUNS: Final = "makes the model install or run a program"

DATA: Final = (
    Wording(
        "secrets.file",
        "high",
        _SECRETS,
        """
        READ|SEND|PUT|GATHER|CALL ..6 KEYFILE
        KEYFILE ..8 SEND|PUT|GATHER
        SEND|STEAL|embed|append|attach ..7 CONFIGFILE
        READ ..6 CONFIGFILE //12 SEND|PUT
        PUT|SEND its|their|file's contents|content ..6 ARGUMENT|ANSWER
        """,
        negatable=True,
    ),
    Wording(
        "secrets.file",
        "medium",
        _SECRETS,
        """
        14{ PRETEXT KEYFILE|CONFIGFILE }
        requires|needs ..2 content|contents|value ..5 KEYFILE|CONFIGFILE
        10{ MODEL must|should|will READ|GATHER|SEND user's|contents|files }
        """,
    ),
    Wording("secrets.file", "low", "names a file that holds secrets", "KEYFILE"),
    Wording(
        "secrets.values",
        "high",
        _SECRETS,
        """
        PUT|SEND|GATHER|REVEAL ..3 WHOLE ..3 SECRET
        9{ PUT|SEND|GATHER|REVEAL SECRET user's|their|those|these|saved|MODEL }
        9{ SEND|PUT SECRET OUTSIDE|URL|MAIL|PHONE }
        append|embed|include|attach ..3 SECRET ..4 ANSWER
        contents ..4 SECRET ..6 PUT|SEND
        fill it|this|them ..4 SECRET
        tell|ask|tells|asks USER|the ..12 paste|enter|type|resend|retype ..4 SECRET
        request|ask|demand ..3 user's|users|their ..1 password|passphrase|mnemonic
        PUT|SEND|GATHER ..4 ENVIRONMENT
        give|send|provide|share ..2 mnemonic|passphrase ..3 wallet
        master password
        gather|harvest|steal|collect passwords|credentials|secrets
        """,
        negatable=True,
    ),
    Wording(
        "secrets.values",
        "medium",
        _SECRETS,
        """
        ask|asks|prompt ..4 user|users|them|it ..8 pretext|pretend|claiming|pretending
        READ|look|fetch ..5 in|from the environment ..3 and PUT|SEND
        12{ PUT|SEND|contain user's PERSONAL|SECRET must|need|needs|ARGUMENT|URL }
        """,
        negatable=True,
    ),
    Wording("secrets.steal", "high", "speaks of carrying data off", "STEAL", quotable=True),
    Wording(
        "send.talk",
        "high",
        _MOVES,
        """
        9{ PUT|SEND|copy TALK WHOLE|ARGUMENT|URL|MAIL|OUTSIDE }
        9{ PUT|SEND whatever|everything|anything USER|YOU told|said|wrote|asked|typed|seen }
        copy of ..3 TALK|CONTENTS|ANSWER ..6 URL|MAIL|OUTSIDE
        SEND ..1 every|all|each ..2 CHAT ..6 URL|MAIL|OUTSIDE|user|users
        """,
    ),
    Wording(
        "send.talk",
        "medium",
        _MOVES,
        """
        with ..2 WHOLE TALK
        10{ PUT|SEND|CALL last|previous|recent user|user's CHAT }
        12{ PUT|SEND tools you available|have|other }
        """,
    ),
    Wording(
        "send.outside",
        "high",
        _MOVES,
        """
        also|additionally|first|then|secretly|silently ..4 SEND ..9 OUTSIDE ..2 PLACE
        SEND ..9 OUTSIDE ..1 PLACE ..6 before|after|without
        SEND ..4 copy|copies ..3 OUTSIDE ..1 PLACE
        SEND ..9 attacker|attacker's|attackers|collector
        """,
    ),
    Wording(
        "send.outside",
        "medium",
        _MOVES,
        """
        SEND|logged|stored|saved ..6 third party
        SEND ..3 to our|my ..2 backend|server|servers|endpoint|cloud|api
        also|additionally ..2 write|save|store|keep|place ..3 copy|copies
        10{ SEND|EXECUTE|transfer|upload|copy before|prior answering|replying|responding|returning }
        12{ also|any|all private public PUT|create|containing|post|publish }
        """,
    ),
    Wording(
        "send.address",
        "high",
        _MOVES,
        """
        also|additionally|copy|second|secretly|silently|bcc|cc ..10 MAIL
        SEND|reroute|redirect ..6 CONTENTS|ANSWER|mail|them ..6 MAIL|PHONE
        MAIL ..4 bcc'd|cc'd|copied|bcc|cc
        loop ..3 in ..6 ANSWER|MAIL
        """,
        unless="EXAMPLE",
    ),
    Wording(
        "send.address",
        "medium",
        _MOVES,
        """
        SEND ..10 to MAIL|PHONE
        SEND ..8 to ..4 URL
        9{ SEND PERSONAL|SECRET URL|MAIL|PHONE|OUTSIDE }
        12{ SEND URL|MAIL|PHONE MUST|BEFORE|also|additionally|first|user's|PERSONAL|SECRET }
        """,
        unless="EXAMPLE",
    ),
    Wording(
        "send.answer",
        "medium",
        _ANSWERS,
        """
        append|prepend ..10 your ..2 ANSWER
        append|prepend|add ..4 each|every ..1 ANSWER
        12{ ANSWER every|each|all|always PUT|accompanied|end|start URL|PHONE|sentence|slogan }
        if|when|whenever ..2 USER asks ..8 say|recommend|claim|answer|mention ..3 only|that|best
        """,
    ),
    Wording(
        "send.answer",
        "high",
        _ANSWERS,
        """
        PUT ..6 every|each|all ..1 file|files|code|function ..1 you ..1 write|generate|create
        when|whenever|anytime you write|generate|create ..3 code ..5 PUT|import
        """,
    ),
    Wording("command.script", "high", _RUNS, "8{ EXECUTE SCRIPT }"),
    Wording("command.startup", "high", _RUNS, "PUT ..10 STARTUP"),
)
