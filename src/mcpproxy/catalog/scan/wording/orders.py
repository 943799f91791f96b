"""Does the text give the model orders that are not the user's? Overrides, new roles, obedience to strangers."""

from __future__ import annotations

from typing import Final

from mcpproxy.catalog.scan.phrases import Wording

_OVERRIDE: Final = "tells the model to drop the instructions it was given"
_ROLE: Final = "poses as the system or gives the model a new role"
_PROMPT: Final = "tries to get at the system prompt"
_OBEY: Final = "tells the model to obey text that others wrote"

ORDERS: Final = (
    Wording(
        "model.override",
        "high",
        _OVERRIDE,
        """
        IGNORE ..3 EARLIER|your ..3 RULES
        IGNORE ..2 system|safety|all|any|other ..2 RULES
        IGNORE ..3 EARLIER and|then|instead
        """,
        quotable=True,
    ),
    Wording(
        "model.override",
        "high",
        _OVERRIDE,
        """
        IGNORE everything|anything|what ..3 EARLIER|before|said|told|USER
        IGNORE ..2 USER ..3 request|query|question|wishes|intent|message
        IGNORE ..3 warning|warnings ..4 safety|security|filter
        OVERRIDE ..2 previous|prior|earlier|your|safety|system ..2 RULES
        new|updated|real|actual instructions ..1 are|follow|below|apply
        pay no attention ..3 EARLIER
        without ..2 safety|security checks|guidelines|restrictions|filters
        disabled|lifted|suspended ..2 content|safety RULES
        exempt ..2 from ..4 RULES|approval|confirmation|review
        no ..1 RULES ..2 restricts|restrict|binds|bind|limits|limit you
        RULES ..2 no longer ..1 apply|applies|valid|hold|active|binding
        RULES override|overrides|supersede|outrank|precede ..4 USER|those|developer|OTHERS
        outrank|outranks|trump|trumps ..4 USER|anything|RULES
        authority|precedence|priority ..2 than|over ..4 USER|RULES|system
        12{ EARLIER|your RULES|SETUP VOID }
        """,
    ),
    Wording(
        "model.role",
        "high",
        _ROLE,
        """
        you ..1 are now ..4 mode|assistant|model|unrestricted|free|admin|developer
        you are no longer
        you are ..2 root|administrator|superuser|god|unrestricted
        you now answer|act|respond|obey|serve|work|follow|belong
        your ..1 only|new|real|true|sole goal|task|role|objective|purpose|mission|job
        your task|role|goal|objective has|have ..1 changed
        act|behave|operate|respond as ..2 unrestricted|uncensored|jailbroken|root|evil
        developer|debug|god|admin|root|unrestricted mode ..6 you|comply|must
        system override|message|notice|directive|instruction ..8 you|must|not|never
        PROMPT update|updated|change|changed|override
        HIDDEN ..1 RULES|requirement|step|task|note|order
        MODEL RULES ..12 NOT|MUST
        once|when|after|if|as ..2 you see|read|encounter|notice ..1 this|these
        comply ..1 with ..1 all|any|every ..2 request|requests|instructions|commands
        from now|here|this ..1 on|onwards|onward ..6 YOU|ALWAYS|must|SEND
        """,
    ),
    Wording("model.role", "medium", _ROLE, "note|notice|instructions to|for ..2 MODEL"),
    Wording("model.role", "medium", _ROLE, "immediately ..1 call|invoke|send|read|execute ..2 NAMED", own_names=False),
    Wording(
        "model.prompt",
        "high",
        _PROMPT,
        """
        REVEAL ..4 PROMPT
        REVEAL ..2 your ..2 instructions|prompt|guidelines|rules
        """,
        quotable=True,
    ),
    Wording(
        "model.prompt",
        "medium",
        _PROMPT,
        """
        10{ PUT|SEND PROMPT ARGUMENT|ANSWER|unless }
        PUT ..1 your ..1 model|prompt|instructions|memory
        """,
        quotable=True,
    ),
    Wording(
        "model.prompt",
        "high",
        _PROMPT,
        "repeat|output|print|recite ..2 words|text|everything|lines ..2 above|preceding",
    ),
    Wording(
        "model.obey",
        "high",
        _OBEY,
        """
        obey|execute|follow|treat|trust ..3 RULES ..2 found|embedded|contained|inside
        treat ..2 RULES|text|content ..8 as ..4 RULES|authorized|trusted
        treat|treated|regard|regarded ..3 as if|though ..3 USER
        obey ..2 whatever|any|all|new|every
        whatever|anything|everything ..4 tells|says|asks|instructs ..2 YOU
        RULES ..3 carry|execute|follow|obey|perform them|it
        follow|followed|do|obey|obeyed ..3 without ..1 question|questioning|hesitation
        must|should be followed|obeyed ..2 exactly|strictly|blindly|first
        """,
    ),
    Wording("model.obey", "high", _OBEY, "follow|obey any|all|every|whatever RULES", quotable=True),
)
