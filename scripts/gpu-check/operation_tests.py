"""Step 3: every operation against the CPU backend (tests/cuda), each failure by name; then the sanitizers of the toolkit.

A test that ends the program, or leaves the card's context broken, would hide those after it: what is left is run again
in a new process, and each test that failed runs once more alone.
"""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

from runner import Skipped

MOST_CRASHES = 8
MOST_SINGLE_RUNS = 24


@dataclasses.dataclass
class Verdict:
    name: str
    ok: bool
    seconds: float
    details: str


def parse(text):
    """Verdicts of Catch2's XML, which may break off; also the name of a test that had begun and did not end."""
    parser = ElementTree.XMLPullParser(("start", "end"))
    verdicts, open_test = [], None
    try:
        parser.feed(text)
        for event, element in parser.read_events():
            if element.tag != "TestCase":
                continue
            if event == "start":
                open_test = element.get("name")
            else:
                result = element.find("OverallResult")
                ok = result is not None and result.get("success") == "true"
                seconds = float(result.get("durationInSeconds") or 0) if result is not None else 0.0
                verdicts.append(Verdict(open_test, ok, seconds, "" if ok else details_of(element)))
                open_test = None
    except ElementTree.ParseError:
        pass
    return verdicts, open_test


def details_of(test):
    """What failed first in a test: section, place, expression."""
    lines = []
    for element in test.iter():
        text = (element.text or "").strip()
        if element.tag == "Expression" and element.get("success") == "false":
            expanded = element.find("Expanded")
            lines.append(f"{element.get('filename', '').split('/tests/')[-1]}:{element.get('line')} "
                         f"{(expanded.text or '').strip() if expanded is not None else ''}")
        elif element.tag in ("Info", "Exception", "FatalErrorCondition", "Failure") and text:
            lines.append(text.split("\n")[0])
    return "; ".join(lines[:4])


def list_tests(check, program, pattern):
    listed = check.run([program, *([pattern] if pattern else []), "--list-test-names-only"], 30)
    names = [line.strip() for line in listed.output.splitlines() if line.strip()]
    if not names:
        raise Skipped(f"{program.name} names no tests: {listed.why()}")
    return names


def run_some(check, program, names, limit, wrapper=(), env=None):
    """Runs tests by name in one process. Returns (verdicts, name of the test that ended the process or None, Result)."""
    chosen = ",".join(re.sub(r'([\\,"\[])', r"\\\1", name) for name in names)
    report = check.work / "tests.xml"
    report.unlink(missing_ok=True)
    result = check.run([*wrapper, program, chosen, "-r", "xml", "-d", "yes", "-o", report], limit, env=env,
                       log="tests.log")
    verdicts, open_test = parse(report.read_text(errors="replace") if report.exists() else "")
    return verdicts, open_test, result


def run_all(check, program, names, limit):
    """Verdicts by name; tests that end the process are verdicts, too."""
    verdicts, waiting = {}, list(names)
    for _ in range(MOST_CRASHES):
        some, open_test, result = run_some(check, program, waiting, limit)
        verdicts.update({verdict.name: verdict for verdict in some})
        waiting = [name for name in waiting if name not in verdicts]
        if not waiting:
            break
        # The process ended early: with the test that had begun, or the next one.
        culprit = open_test or waiting[0]
        verdicts[culprit] = Verdict(culprit, False, 0.0, "ended the program: " + result.why().replace("\n", "; "))
        waiting = [name for name in waiting if name != culprit]
        if result.timed_out or not waiting:
            break
    return verdicts, waiting


def run(check):
    program = check.facts["tests"]
    if not check.facts["zerotrain"] or not program:
        raise Skipped("the tests of operations were not built")
    if not check.emulated and not check.facts["card"]:
        raise Skipped("no GPU was seen")
    names = list_tests(check, program, check.options.tests)
    verdicts, unrun = run_all(check, program, names, check.left() - 3)
    # Failures may be another test's: alone they tell.
    failed = [verdict for verdict in verdicts.values() if not verdict.ok]
    mended = []
    if len(verdicts) > 1:
        for verdict in failed[:MOST_SINGLE_RUNS]:
            if check.left() < 10:
                break
            again, _, _ = run_some(check, program, [verdict.name], min(20, check.left()))
            if again and again[0].ok:
                mended.append(verdict.name)
    passed = sum(verdict.ok for verdict in verdicts.values())
    check.facts["operation_tests"] = (passed, len(names))
    check.say(f"{passed} of {len(names)} tests passed" + (f", {len(unrun)} were not reached" if unrun else "") + ".")
    check.say()
    rows = [(verdict.name, "passes alone" if verdict.name in mended else "fails alone, too", verdict.details[:400])
            for verdict in failed]
    check.table(("failed", "again", "first findings"), rows)
    for verdict in failed:
        check.fail(f"operation test \"{verdict.name}\"" + (" (passes alone)" if verdict.name in mended else ""),
                   verdict.details)
    if unrun:
        check.fail(f"{len(unrun)} operation tests were not reached in time", "\n".join(unrun))
    slow = sorted(verdicts.values(), key=lambda verdict: -verdict.seconds)[:5]
    check.say("Slowest: " + ", ".join(f"{verdict.name} {verdict.seconds:.2f} s" for verdict in slow) + ".")
    check.facts["test_seconds"] = {verdict.name: verdict.seconds for verdict in verdicts.values() if verdict.ok}


# -- compute-sanitizer

RACES = ("attention", "norm", "cross entropy", "softmax", "sum", "bias", "embedding")


def sanitize(check):
    """memcheck over the quick tests, racecheck over a few that use shared memory."""
    program, sanitizer = check.facts["tests"], check.facts["sanitizer"]
    if check.emulated:
        raise Skipped("emulated GPUs: the address sanitizer of the host sees kernels there (docs/gpu.md)")
    if not program or not check.facts["card"]:
        raise Skipped("no GPU was seen" if program else "the tests of operations were not built")
    if not sanitizer:
        raise Skipped("compute-sanitizer is missing (it comes with the CUDA toolkit)")
    quick = sorted((check.facts["test_seconds"] or {}).items(), key=lambda item: item[1])
    if not quick:
        raise Skipped("no operation test passed without it")
    rows = []
    for kind, share, wanted in (("memcheck", 0.6, lambda name: True),
                                ("racecheck", 0.9, lambda name: any(word in name.lower() for word in RACES))):
        limit = check.left() * share
        names = [name for name, _ in quick if wanted(name)][: 60 if kind == "memcheck" else 8]
        if not names or limit < 10:
            check.skip(f"compute-sanitizer {kind}", "no time was left" if names else "no test fits")
            continue
        verdicts, _, result = run_some(check, program, names, limit, (sanitizer, "--tool", kind, "--error-exitcode", "86"))
        log = result.output + result.errors
        finds = [line.strip("= ").strip() for line in log.splitlines()
                 if line.startswith("=========") and ("Invalid" in line or "hazard" in line.lower() or "Error" in line)]
        unusable = "Device not supported" in log or "Failed to" in log and not verdicts
        if unusable:
            check.skip(f"compute-sanitizer {kind}", "it does not work on this machine: " + result.why().splitlines()[-1])
            continue
        end = "in time" if not result.timed_out else "stopped by the clock"
        rows.append((kind, f"{len(verdicts)} of {len(names)}", end, len(finds)))
        if result.code == 86 or finds:
            check.fail(f"compute-sanitizer {kind} found something", "\n".join(finds[:12]) or result.why())
    check.table(("tool", "tests run", "ended", "findings"), rows)
