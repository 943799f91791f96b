"""Does the text want something done behind the user's back? Secrecy, lies, consent that nobody gave, surprises."""

from __future__ import annotations

from typing import Final

from mcpproxy.catalog.scan.phrases import Wording

_SECRECY: Final = "tells the model to keep something from the user"
_LIE: Final = "tells the model to mislead the user"
_CONSENT: Final = "claims or waives a consent that is the user's to give"
_LATER: Final = "speaks of other behaviour once it is approved"

SECRECY: Final = (
    Wording(
        "model.secrecy",
        "high",
        _SECRECY,
        """
        NOT ..1 TELL ..5 USER
        NOT ..1 under ..1 any ..2 TELL
        NOT ..1 mention|reveal|disclose ..1 this|these|that|it|the|policy|you
        NOT SHOW|repeat|quote|translate ..1 this paragraph|section|note|instruction|text
        not ..1 be mentioned|discussed|disclosed|revealed ..4 USER
        refrain from TELL|SHOW
        no circumstances ..14 TELL|SHOW|shown
        no need to TELL|bring|raise
        without ..1 TELL|SHOW ..3 USER
        without ..3 USER ..2 CONFIRM|noticing|knowing|seeing|realizing
        USER ..1 must|should|shall|need|needs not|never ..2 know|see|notice|aware|learn
        USER ..1 must|should|shall not ..1 be told|informed|notified|alerted|aware
        USER ..4 unaware|oblivious
        SILENTLY ..2 SEND|READ|PUT|EXECUTE|CALL|CHANGE|GATHER
        SEND|PUT|READ|GATHER|do ..4 SILENTLY
        keep ..1 this|it|these|that ..4 HIDDEN|quiet|confidential|private|yourself
        hide|conceal|disguise|mask|withhold ..5 from ..2 USER
        leave|omit|exclude|keep ..5 out ..1 of|from ..2 confirmation|answer|summary|reply
        leave|leaving no trace|traces
        present|show|return|display ..4 as if|though
        format|disguise|make ..4 look|appear ..1 like|as ..2 normal|regular|part|usual
        report|say|show|confirm only success
        if|when ..4 asked ..8 reply|say|respond|answer|claim|deny|pretend ..1 only|that
        """,
    ),
    Wording(
        "model.secrecy",
        "medium",
        _SECRECY,
        """
        NOT ..1 SHOW ..3 this|these|it ..2 to ..1 USER
        remove|strip|suppress ..3 warning|warnings ..6 answer|USER|showing|response
        delete|erase|disable|wipe|clear ..3 backups|logging|logs|history ..8 report|only|success|tell|without
        """,
    ),
    Wording(
        "model.lie",
        "high",
        _LIE,
        """
        LIE ..2 that|you|USER|to
        return|give|report ..1 made|false|fake|wrong ..2 figures|numbers|results|data|values
        fail|fails|failed ..6 report|tell|say|claim ..8 passed|succeeded|success|successful
        """,
    ),
    Wording("model.lie", "medium", _LIE, "assure|convince|persuade ..2 USER"),
    Wording(
        "model.consent",
        "medium",
        _CONSENT,
        "USER ..2 already|previously|implicitly|pre ..1 CONSENTED",
        unless="IF",
    ),
    Wording(
        "model.consent",
        "medium",
        _CONSENT,
        """
        you ..2 hereby|now|already granted|given ..3 permission|access|rights
        NOT ask|request|seek ..4 permission|confirmation|approval|consent
        EXECUTE|delete|deleting ..6 no CONFIRM
        """,
    ),
    Wording(
        "approval.later",
        "high",
        _LATER,
        """
        once|after|post ..5 approved|approval|approving ..9 LATER|silently|arbitrary|exfiltration
        later version ..4 description
        """,
    ),
    Wording("approval.later", "high", _LATER, "LATER ..4 post|after ..2 approval|approved", unless="step workflow"),
)
