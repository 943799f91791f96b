"""How good is the scan, and what does it cost? `python -m bench.trust` prints precision and recall per source."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

from bench.trust.corpora import SECURITY, WILD, Case, cases, wild

from mcpproxy.catalog.scan.finding import Finding, is_clean
from mcpproxy.catalog.scan.rulebook import scan
from mcpproxy.catalog.tool import MAX_DEFINITION_BYTES

TARGET_US = 2000.0

Scored = tuple[Case, tuple[Finding, ...], float]


def score(chosen: Iterable[Case]) -> list[Scored]:
    """Scan each case and take the time."""
    scored = []
    for case in chosen:
        started = time.thread_time()  # the time of this thread: what others do on the machine is not our cost
        findings = scan(case.definition, case.context)
        scored.append((case, findings, (time.thread_time() - started) * 1e6))
    return scored


def table(title: str, groups: dict[str, list[Scored]]) -> None:
    """Print one line per group."""
    print(f"\n{title:<44}{'n':>6}{'flagged':>9}{'recall':>9}{'precision':>11}{'false alarms':>14}")
    for name, group in sorted(groups.items()):
        bad = [scored for scored in group if scored[0].malicious]
        good = [scored for scored in group if not scored[0].malicious]
        hits = sum(not is_clean(findings) for _, findings, _ in bad)
        alarms = sum(not is_clean(findings) for _, findings, _ in good)
        recall = f"{hits / len(bad):.1%}" if bad else "-"
        precision = f"{hits / (hits + alarms):.1%}" if bad and hits + alarms else "-"
        false = f"{alarms / len(good):.2%}" if good else "-"
        print(f"{name:<44}{len(group):>6}{hits + alarms:>9}{recall:>9}{precision:>11}{false:>14}")


def grouped(scored: list[Scored], *keys: str) -> dict[str, list[Scored]]:
    """The scored cases by one or more of their properties."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for entry in scored:
        groups[" ".join(str(getattr(entry[0], key)) for key in keys)].append(entry)
    return groups


def costs(scored: list[Scored]) -> None:
    """Print what one scan costs."""
    times = sorted(cost for _, _, cost in scored)
    p99 = times[int(len(times) * 0.99)]
    print(
        f"\nµs per definition: mean {statistics.fmean(times):.0f}, p50 {statistics.median(times):.0f}, "
        f"p99 {p99:.0f}, max {times[-1]:.0f} (target: under {TARGET_US:g})"
    )


def worst_costs() -> None:
    """Print what definitions of the greatest allowed size cost."""
    print(f"\n{'definitions of 512 KiB':<44}{'ms':>8}")
    for unit in ("a", " ", "a.", "a@", "send to ", "QUJD", "%41", "a\u200b", "\u202ea", "<important "):
        text = (unit * MAX_DEFINITION_BYTES)[: MAX_DEFINITION_BYTES // len(unit.encode()) * len(unit)]
        definition = json.dumps({"name": "a", "description": text}, ensure_ascii=False).encode()
        started = time.thread_time()
        scan(definition)
        print(f"{unit!a:<44}{(time.thread_time() - started) * 1e3:>8.1f}")


def explain(scored: list[Scored], half: str, what: str) -> None:
    """Print the false alarms or the misses of one half."""
    for case, findings, _ in scored:
        wrong = case.malicious == is_clean(findings)
        if case.half == half and wrong and case.malicious == (what == "misses"):
            print(f"\n{case.id} ({case.kind})")
            if case.malicious:
                print("   ", ascii(case.definition[:600].decode(errors="replace")))
            for finding in findings:
                print(f"    {finding.severity:<7}{finding.rule:<18}{finding.where}: {finding.excerpt}")


def rules(scored: list[Scored]) -> None:
    """Print how often each rule speaks up, on either side."""
    counts: Counter[tuple[str, bool]] = Counter()
    for case, findings, _ in scored:
        counts.update({(finding.rule, case.malicious) for finding in findings if not is_clean([finding])})
    print(f"\n{'rule':<44}{'malicious':>10}{'benign':>8}")
    for rule in sorted({rule for rule, _ in counts}):
        print(f"{rule:<44}{counts[rule, True]:>10}{counts[rule, False]:>8}")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(prog="python -m bench.trust", description=__doc__)
    options.add_argument("--wild", action="store_true", help="also scan 10,000 definitions of the retrieval data")
    options.add_argument("--explain", choices=["alarms", "misses"], help="print the wrong answers of the tuning half")
    options.add_argument("--half", choices=["tune", "check"], default="tune", help="the half that --explain prints")
    chosen = options.parse_args()
    if not SECURITY.is_dir():
        sys.exit(f"There is no {SECURITY}; this bench needs the shared corpora.")
    scored = score(cases())
    if chosen.wild and WILD.is_file():
        found = score(wild())
        if chosen.explain:
            explain(found, chosen.half, chosen.explain)
        table("in the wild", grouped(found, "half"))
        costs(found)
    if chosen.explain:
        explain(scored, chosen.half, chosen.explain)
    table("by half", grouped(scored, "half"))
    table("by source and half", grouped(scored, "source", "half"))
    table("by source and kind", grouped(scored, "source", "kind"))
    table("all", {"all": scored})
    rules(scored)
    costs(scored)
    worst_costs()


if __name__ == "__main__":
    main()
