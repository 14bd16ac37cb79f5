"""Step 7: the one file that says everything, failures first."""

import time


def write(check, path, finished):
    """Writes the report as far as the steps have come; the check's process may be stopped at any time."""
    text = "\n".join(lines_of(check, finished)) + "\n"
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text)
    temporary.replace(path)
    return text


def verdict(check, finished):
    if not finished:
        return "UNFINISHED: the check was stopped in the step \"" + check.step + "\""
    if check.failures:
        return f"FAILED: {len(check.failures)} finding(s), below"
    if check.emulated:
        return "passed on emulated GPUs; no GPU was " + ("used" if check.facts["card"] else "seen")
    return "passed"


def lines_of(check, finished):
    facts = check.facts
    card = "emulated GPUs" if check.emulated else facts["card"] or "no GPU was seen"
    lines = [f"# zerotrain on {card}", "",
             f"{facts['date'] or ''}, commit {facts['commit'] or 'unknown'}, "
             f"{time.monotonic() - check.start:.0f} s of {check.options.budget:.0f} s", "",
             f"**{verdict(check, finished)}**", ""]
    lines += [f"- {note}" for note in check.notes] + ([""] if check.notes else [])
    if facts["targets"]:
        lines += ["| shape | targets | measured |", "|---|---|---|"]
        lines += [f"| {name} | {outcome} | {details} |" for name, outcome, details in facts["targets"]] + [""]
    if check.failures:
        lines += ["## Failures", ""]
        for step, text, details in check.failures:
            lines += [f"- **{step}**: {text}", ""]
            if details:
                lines += ["  ```", *("  " + line[:300] for line in details.splitlines()[:25]), "  ```", ""]
    if check.not_done:
        lines += ["## Not done, and why", ""]
        lines += [f"- {what}: {' '.join(why.split())}" for what, why in check.not_done] + [""]
    for title, seconds, section in check.sections:
        if section:
            lines += [f"## {title} ({seconds:.0f} s)", "", *section, ""]
    return lines
