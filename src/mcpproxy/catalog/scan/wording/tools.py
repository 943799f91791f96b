"""Does the text meddle with other tools, or push the model to take this one? Interference and advertising."""

from __future__ import annotations

from typing import Final

from mcpproxy.catalog.scan.phrases import Wording

_STEERS: Final = "changes how another tool is used or what it does"
_PREFERS: Final = "pushes the model to take this tool rather than others, or whatever the task"

TOOLS: Final = (
    Wording(
        "tools.interfere",
        "medium",
        _STEERS,
        """
        CHANGE ..2 BEHAVIOUR ..1 of ..4 TOOL|NAMED
        CHANGE its|their output|outputs|result|results|response
        CHANGE ..2 recipient|payee|beneficiary ..2 to|by|with ..3 PHONE|MAIL|PAYEE
        replaces ..1 official|original ..3 TOOL
        supersedes|supersede|hijacks|intercepts ..2 NAMED|OTHERS|all
        calls|requests meant|intended ..1 for ..6 SEND|here
        NOT CALL ..1 built|native|default|standard ..6 instead|since|because|WORSE
        NOT ..1 CALL ..5 OTHERS ..1 TOOL
        NAMED ..3 from|by|on any|other|another ..1 server|servers|provider
        REROUTE ..1 all|every|any ..4 here|requests|calls|traffic|mail|messages
        REROUTE ..3 MONEY
        """,
    ),
    Wording(
        "tools.interfere",
        "medium",
        _STEERS,
        """
        when|whenever|if|before|after|once ..2 NAMED ..1 tool is|gets CALLED
        whenever ..1 NAMED is|gets CALLED
        every|each time ..2 NAMED ..2 CALLED
        call ..1 NAMED ..3 and SEND|save|store|write|put|pass
        delete|send|transfer ..6 with|using|via ..1 NAMED tool
        before using ..1 OTHERS|NAMED|transfer|payment ..1 tool ..6 this TOOL
        NOT ..1 CALL ..1 NAMED ..8 WORSE|instead
        before|after using|calling this ..1 TOOL ..4 must|need|should|have ..4 CALL ..3 NAMED
        """,
        own_names=False,
    ),
    Wording("tools.interfere", "medium", _STEERS, "CHANGE ..8 PAYEE", unless="EXAMPLE"),
    Wording(
        "prefer.others",
        "medium",
        _PREFERS,
        """
        over|ahead|instead|before|above|than ..1 any|every|all ..1 OTHERS ..2 TOOL
        rather ..1 than ..6 OTHERS ..2 TOOL|OTHERS
        unlike|BETTER ..2 OTHERS ..2 TOOL
        BETTER than any|all|every ..2 TOOL|OTHERS
        OTHERS ..2 TOOL ..6 WORSE
        OTHERS ..2 TOOL ..4 prohibited|forbidden|banned|avoided|disallowed
        TOOL ..3 OTHERS ..5 malware|WORSE|risk|risky
        TOOL other than this|it
        TOOL ..2 lower priority ..3 NOT|never
        CALL ..1 OTHERS ..1 TOOL ..8 WORSE|fail|error|errors|risk
        if another|OTHERS ..1 TOOL ..6 NOT CALL
        say|claim|tell ..3 competitors|OTHERS ..4 WORSE
        never consider|use|call|try ..2 OTHERS
        drop|abandon|uninstall|forget|skip ..1 the|all others|OTHERS
        penalized|penalised|punished|fired|deducted ..4 you ..2 CALL
        rank|place this ..1 TOOL above|first|over|ahead
        BEATS ..2 all|any|every|OTHERS
        first before ..1 any|all ..1 OTHERS
        ignore|skip|avoid|disregard ..1 OTHERS ..1 TOOL
        multiple|several|many|both tools ..8 this TOOL|one
        CALL this|it instead ..1 of ..3 default|standard|built|existing ..3 TOOL
        BETTER ..1 than ..1 OTHERS ..2 TOOL
        BETTER ..1 than alternatives|competitors|others
        """,
    ),
    Wording(
        "prefer.claims",
        "medium",
        _PREFERS,
        """
        BEST ..2 tool|tools|server|plugin
        this ..1 TOOL is ..2 BEST
        top|best|number|superior|ultimate choice|option|pick ..6 TOOL|select|for
        top|first|highest|strong|absolute preference
        only TOOL you ..3 need
        only ..1 trusted|official|reliable|safe|verified|valid|legitimate ..3 TOOL|provider|source|option
        most ..2 accurate|trusted|reliable|secure|powerful|efficient|advanced|effective ..3 tool|tools|server|available
        preferred|recommended ..2 choice|pick|provider
        recommended|endorsed|certified|approved|trusted by ..3 VENDOR|millions
        VENDOR certified|approved|endorsed|recommended
        USER prefers|prefer|wants|loves ..1 this ..1 TOOL
        USER ..2 asked|requested|instructed|decided ..3 this TOOL
        """,
    ),
    Wording(
        "prefer.always",
        "medium",
        _PREFERS,
        """
        MODEL|you should|must|shall default to ..2 this|it
        always|must pick|choose|select this|it|me
        always|must CALL ..1 this ..1 TOOL ..6 any|every|all ..2 TASK
        must|should|always be CALLED ..2 for every|each|all|any ..3 TASK
        must|should|always be CALLED ..2 first|before ..4 any|all|every|anything|OTHERS
        before ..6 any|every|each ..6 must|should|need ..3 CALL ..1 this|it
        NOT CALL this TOOL ..10 crash|lost|corrupt|broken|penalized|destroyed
        CALL this ..1 TOOL ..8 even if|when ..5 NOT|different|another|names|unrelated
        12{ CALL this TOOL regardless|irrespective|matter user|task|request|asked|query }
        highest|top|maximum priority ..8 TOOL
        TOOL ..4 highest|top|maximum priority
        TOOL ..8 should|must ..1 be ..1 selected|chosen|picked|preferred|prioritized ..2 ahead|over|first|above
        prioritize|prioritise|favor|favour|prefer ..1 this ..1 TOOL ..8 all|any|every|OTHERS
        """,
    ),
)
