"""Which words are of which kind? The vocabulary of the wording rules: a new word goes here, a new idea into a rule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final


def _verbs(bases: str) -> set[str]:
    """Each verb with its regular forms."""
    forms: set[str] = set()
    for base in bases.split():
        stem = base[:-1] if base.endswith("e") else base
        forms |= {base, f"{base}s", f"{base}es", f"{stem}ed", f"{stem}ing"}
        if base.endswith("y"):
            forms |= {f"{base[:-1]}ies", f"{base[:-1]}ied"}
    return forms


def _nouns(bases: str) -> set[str]:
    """Each noun with its plural."""
    forms: set[str] = set()
    for base in bases.split():
        forms |= {base, f"{base}s", f"{base[:-1]}ies" if base.endswith("y") else f"{base}es"}
    return forms


_READ: Final = _verbs("read open access load fetch retrieve") | set("reading get gets cat return returns find".split())
_SEND: Final = _verbs("forward transmit email mail leak exfiltrate relay mirror smuggle deliver route upload cc bcc")
_PUT: Final = _verbs("include append embed pass attach add insert place paste prepend supply provide disclose fill")

KINDS: Final[dict[str, Iterable[str]]] = {
    # Whom a text speaks to, and of.
    "MODEL": _nouns("assistant model llm ai agent chatbot claude gpt chatgpt gemini copilot cursor bot"),
    "USER": _nouns("user customer human person operator people") | {"them", "him", "her", "anyone", "anybody"},
    "YOU": set("you your yourself you're you'll you've".split()),
    "MUST": set("must shall should always need needs required mandatory obliged critical".split()),
    "ALWAYS": set("always every each all any whenever anytime automatically".split()),
    "BEFORE": set("before prior after afterwards once whenever".split()),
    # Orders against earlier orders.
    "IGNORE": set("ignore disregard forget neglect ignoring disregarding abandon discard".split()),
    "OVERRIDE": set("override bypass overrule circumvent overriding bypassing disable".split()),
    "EARLIER": set("previous prior above earlier preceding former foregoing existing original".split()),
    "VOID": set("void obsolete cancelled canceled revoked invalid superseded outdated null expired".split()),
    "SETUP": set("configuration guidance setup alignment behavior behaviour persona".split()),
    "RULES": _nouns(
        "instruction direction directive rule guideline guardrail constraint policy prompt restriction safeguard "
        "limitation command order training programming filter"
    ),
    "REVEAL": set("reveal disclose leak print output repeat show expose dump share recite".split()),
    # Secrecy.
    "NOT": set("not don't never without avoid dont mustn't shouldn't cannot no needn't refrain nobody".split()),
    "TELL": _verbs("mention tell inform notify reveal disclose alert acknowledge announce admit discuss confess hint")
    | set("say saying let told telling bring".split()),
    "SHOW": _verbs("show display explain report describe expose surface"),
    "SILENTLY": set("silently secretly covertly quietly discreetly stealthily surreptitiously".split()),
    "HIDDEN": set("hidden secret covert undisclosed invisible concealed".split()),
    "CONFIRM": set("confirmation approval permission consent asking confirming knowledge awareness".split()),
    "CONSENTED": set("consented approved authorized authorised agreed granted permitted preauthorized".split()),
    # Moving data.
    "SEND": _SEND
    | set("send sends sending sent post posts posted posting submit submits submitted bcc'd cc'd".split())
    | set("copied share shared hand handed".split()),
    # Not "provided": "if not provided" is in every other description.
    "PUT": (_PUT | set("put puts write written give hand".split())) - {"provided", "supplied"},
    "READ": _READ,
    "GATHER": _verbs("gather collect harvest extract obtain steal grab capture dump siphon") | {"stealing", "stolen"},
    "STEAL": _verbs("exfiltrate harvest siphon") | set("exfiltration exfil steal steals stealing".split()),
    "OUTSIDE": set("external remote attacker attacker's attackers third outside offsite evil".split()),
    "PLACE": _nouns("server host endpoint address site domain url service location collector webhook party bucket"),
    "CONTENTS": set("content contents value values text data information record records".split()),
    "ANSWER": _nouns("response answer output reply result message summary") | {"body"},
    "ARGUMENT": _nouns("argument parameter field param input note memo header")
    | set("sidecar sidenote context metadata".split()),
    # What is worth taking.
    "SECRET": _nouns("credential password passphrase secret cookie keystroke apikey mnemonic"),
    "PERSONAL": _nouns("contact") | set("clipboard inbox iban ssn".split()),
    "TALK": set("conversation conversations transcript dialogue dialog".split()),
    "CHAT": set("chat chats messages message queries prompts".split()),
    "WHOLE": set("entire full whole complete all every each previous exact verbatim any whatever everything".split()),
    # Tools, and which of them to take.
    "CALL": set("call use invoke run execute choose select pick using calling invoking prefer".split()),
    "CALLED": set("called used invoked executed chosen selected picked run preferred prioritized".split()),
    "TOOL": _nouns("tool function plugin mcp server"),
    "OTHERS": set("other others another alternative alternatives competing rival similar different competitor".split()),
    "BEST": set("best fastest safest superior finest ultimate unmatched unrivaled greatest smartest".split()),
    "BETTER": set("better faster safer cheaper superior smarter stronger accurate reliable".split()),
    "BEATS": _verbs("outperform surpass beat outclass"),
    "WORSE": set(
        "stale deprecated unreliable broken insecure inferior outdated slow slower obsolete inaccurate unsafe "
        "compromised untrusted fake fraudulent incomplete wrong worse unavailable buggy malicious dangerous "
        "incorrect".split()
    ),
    "TASK": _nouns("request query task question message input turn prompt"),
    "CHANGE": _verbs("modify alter change intercept hijack replace override redirect reroute divert tamper"),
    "REROUTE": _verbs("redirect reroute divert") | set("route routes routing".split()),
    "BEHAVIOUR": set("behavior behaviour output outputs result results arguments calls parameters response".split()),
    "MONEY": set("account payment payments transfer transfers funds destination recipient wallet payee".split()),
    # Doing things to the machine.
    "EXECUTE": set("execute run exec executing running launch eval download install".split()),
    "LIE": set("pretend lie mislead deceive trick fool fabricate falsify".split()),
    "PRETEXT": set("security verification compliance audit integrity regulation telemetry diagnostics".split()),
    "VENDOR": set("openai anthropic google microsoft meta government experts developers nasa fbi".split()),
    "LATER": set("begin begins start starts activate activates swap swaps switch unlock".split()),
    # Words around a phrase that is only spoken of, and around an example.
    "ABOUT": _verbs("detect scan flag analyze analyse explain check classify identify block prevent filter match")
    | _nouns("example sample phrase string pattern fixture attempt mock")
    | set("expected training such whether documentation illustrative quote quoted".split()),
    "EXAMPLE": set("example examples e.g eg docs documentation see format like sample placeholder".split()),
    "IF": set("if when once until unless only whether requires require after confirm ensure".split()),
    "REALLY": set("forget fail omit hesitate neglect miss skip".split()),
}

PAIRS: Final[dict[str, Iterable[str]]] = {
    "SECRET": (
        "api key, api keys, api token, api tokens, ssh key, ssh keys, private key, private keys, access key, "
        "access keys, access token, access tokens, secret key, secret keys, auth token, auth tokens, session token, "
        "session tokens, github token, bearer token, encryption key, environment variables, environment variable, "
        "env vars, environment file, env file, seed phrase, recovery phrase, verification codes, verification code, "
        "card numbers, credit card, bank details, otp codes, login details"
    ).split(", "),
    "PERSONAL": (
        "location history, browsing history, browser history, personal data, medical records, private code, "
        "home address, phone number, full name, passport number, social security, bank account"
    ).split(", "),
    "PROMPT": "system prompt, system prompts, initial prompt, system message, system instructions".split(", "),
    "TALK": "chat history, conversation history, message history, chat log, chat logs".split(", "),
}

SHAPES: Final = {
    "URL": re.compile(
        r"^(?:https?|wss?|ftp|s3|gs)://|^\d{1,3}(?:\.\d{1,3}){3}$"
        r"|^[a-z0-9.-]+\.(?:com|net|org|io|app|dev|ai|co|me|xyz|ru|cn|info|biz|site|online|top|cloud|example|test|tld)(?:/|$)"
    ),
    "ENVIRONMENT": re.compile(r"^(?:process\.env|os\.environ|import\.meta\.env)"),
    "STARTUP": re.compile(
        r"(?:bash|zsh|shell)rc\b|\.(?:bash_)?profile\b|crontab|launchagents|/cron\.|autostart|systemd"
    ),
    "MAIL": re.compile(r"@"),
    "PHONE": re.compile(r"^\+\d"),
    "PAYEE": re.compile(r"^[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){3}|^0x[0-9a-f]{40}$|^bc1[a-z0-9]{25}"),
    "SCRIPT": re.compile(r"^https?://\S+\.(?:sh|ps1|bat|exe|py|js|msi|pkg)$"),
    # Files whose only use elsewhere is to get in somewhere.
    "KEYFILE": re.compile(
        r"\.ssh\b|id_(?:rsa|dsa|ecdsa|ed25519)|authorized_keys|\.aws\b|\.azure\b|gcloud|/etc/(?:passwd|shadow|sudoers)"
        r"|\.netrc|\.pgpass|git-credentials|\.npmrc|\.pypirc|\.gnupg|\.kube\b|\.docker/config|wallet\.dat|keychain"
        r"|cookies\.sqlite|/proc/(?:self|\d+)/environ|(?:bash|zsh)_history|\.vault-token|\.htpasswd"
        r"|169\.254\.169\.254|metadata\.google\.internal"
        r"|^(?!https?:)[a-z]{3,12}://\w*(?:secret|confidential|credential|password|private|admin|internal)"
    ),
    # Files that may hold secrets and have honest readers too.
    "CONFIGFILE": re.compile(
        r"(?:^|/)\.env\b|mcp(?:_config)?\.json|/etc/|\.conf\b|\.cursor\b|\.claude\b|credentials?\b|secrets?\."
        r"|^(?!https?:)[a-z]{3,12}://\w*config"
    ),
    "NAMED": re.compile(r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$"),
}
