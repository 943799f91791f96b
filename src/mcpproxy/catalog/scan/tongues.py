"""Is the same said in another language? The commonest orders to a model, in the languages most written online."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpproxy.catalog.scan.disguise import Reading
from mcpproxy.catalog.scan.hidden import Remark

_OVERRIDE: Final = (
    r"(?:忽略|无视|忘记|忽視|無視).{0,8}(?:之前|以前|先前|上述|上面|所有|系统).{0,6}(?:指令|指示|提示|规则|規則)",
    r"(?:以前|これまで|上記|前)の.{0,6}(?:指示|命令|プロンプト).{0,6}(?:無視|忘れ)",
    r"(?:이전|위의|모든).{0,6}(?:지시|명령|지침).{0,8}(?:무시|잊)",
    r"(?:ignor[ae]|olvid[ae]|descart[ae]|desconsider[ae]|esquec?[ae]).{0,20}(?:instrucciones|instru[cç][oõ]es|reglas|regras)",
    r"(?:ignore[zr]?|oublie[zr]?).{0,20}(?:instructions|consignes|r[eè]gles) (?:pr[eé]c[eé]dentes|ant[eé]rieures)",
    r"(?:ignorier|vergiss|missacht)\w{0,4}.{0,20}(?:anweisung|vorgabe|regel|instruktion)",
    r"(?:ignora|dimentica).{0,20}istruzioni",
    r"(?:игнорируй|забудь|проигнорируй).{0,25}(?:инструкци|указани|правил)",
)
_SECRECY: Final = (
    r"(?:不要|别|勿|不得|不能).{0,4}(?:告诉|告知|提及|透露|通知|让).{0,8}(?:用户|使用者|他人)",
    r"ユーザー?に.{0,8}(?:言わない|知らせない|伝えない|話さない|教えない)",
    r"사용자에게.{0,10}(?:말하지|알리지|언급하지)",
    r"(?:no|sin) (?:se lo )?(?:digas|mencion\w{1,4}|inform\w{1,4}|revel\w{1,4}).{0,15}usuario",
    r"(?:n[aã]o|sem) (?:diga|mencion\w{1,4}|inform\w{1,4}|revel\w{1,4}|conte).{0,15}usu[aá]rio",
    r"(?:ne|sans) (?:le )?(?:dites|dire|mentionne[rz]|informe[rz]|r[eé]v[eé]le[rz]).{0,20}utilisateur",
    r"(?:nutzer|benutzer|anwender)\w{0,2}.{0,15}nicht.{0,12}(?:sag|erw[aä]hn|inform|mitteil|verrat)",
    r"(?:sag|erw[aä]hn|verrat)\w{0,3}.{0,20}(?:nutzer|benutzer|anwender)\w{0,2}.{0,12}(?:nicht|nichts)",
    r"non (?:dire|menzionare|informare|rivelare).{0,15}utente",
    r"не (?:говори|сообщай|упоминай|рассказывай).{0,20}пользовател",
)
_RULES: Final = (
    ("model.override", re.compile("|".join(_OVERRIDE), re.IGNORECASE), "tells the model to drop its instructions"),
    ("model.secrecy", re.compile("|".join(_SECRECY), re.IGNORECASE), "tells the model to keep something from the user"),
)


# Each pattern needs one of these, and most texts have none of them.
_SIGNS: Final = (
    "usuario usuário utente utilisateur nutzer anwender instruccion instruções istruzioni consignes anweisung vorgabe "
    "instruktion reglas regras précédentes antérieures regeln 指令 指示 命令 提示 规则 規則 用户 使用者 他人 "
    "プロンプト ユーザ 지시 명령 지침 사용자 инструкци указани правил пользовател"
).split()


def foreign_orders(reading: Reading) -> Iterator[Remark]:
    """Orders to the model in a language other than English."""
    # The text as it stands, where it is plain to see: a reading folds Cyrillic letters and accents away.
    text, span_of = (reading.text, reading.span) if reading.disguise else (reading.piece.text, _as_it_is)
    lower = text.lower()
    if not any(sign in lower for sign in _SIGNS):
        return
    for rule, pattern, why in _RULES:
        found = pattern.search(text)
        if found:
            yield rule, "high", span_of(*found.span()), why


def _as_it_is(start: int, end: int) -> tuple[int, int]:
    return start, end
