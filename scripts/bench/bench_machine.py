"""Where a bench runs: the machine, the build, and what else had the processors meanwhile."""

import json
import os
import pathlib
import platform
import re
import subprocess

# Those that decide how fast products are.
CPU_FLAGS = ["avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_fp16",
             "sve", "bf16"]


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine():
    info = {"cpu": platform.processor() or platform.machine(), "cores": cores(), "instruction_sets": [], "caches": {},
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": f"{platform.system()} {platform.release()}"}
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        return info
    if found := re.search(r"^model name\s*:\s*(.+)$", text, re.M):
        info["cpu"] = found[1]
    if found := re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.M):
        info["instruction_sets"] = [flag for flag in CPU_FLAGS if flag in found[1].split()]
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction":
            info["caches"]["L" + level] = size
    return info


def build_facts(build):
    """Compiler and flags, from CMake's cache."""
    try:
        text = (build / "CMakeCache.txt").read_text()
    except OSError:
        return {}
    cache = dict(re.findall(r"^([A-Za-z0-9_]+):[A-Z]+=(.*)$", text, re.M))
    kind = cache.get("CMAKE_BUILD_TYPE", "")
    flags = f"{cache.get('CMAKE_CXX_FLAGS', '')} {cache.get('CMAKE_CXX_FLAGS_' + kind.upper(), '')}".split()
    commands = build / "compile_commands.json"
    if commands.exists():  # what the project itself adds is only there
        for entry in json.loads(commands.read_text()):
            if entry["file"].endswith("src/main.cpp"):
                flags = [word for word in entry["command"].split()
                         if re.match(r"-(O|m|f(?!diagnostics)|g|std=)", word)]
                break
    compiler = cache.get("CMAKE_CXX_COMPILER", "")
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout if compiler else ""
    return {"compiler": version.splitlines()[0] if version else compiler, "flags": " ".join(flags)}


def zerotrain_version(binary):
    result = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    return result.stdout.strip().splitlines() or ["unknown"]


def statement(session):
    """The lines that say where a session ran."""
    m, build = session["machine"], session["build"]
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    lines = [f"{m['cpu']}, {m['cores']} cores, {m['memory_bytes'] / 2**30:.0f} GiB"
             + (f", {caches}" if caches else "") + f"; {' '.join(m['instruction_sets'])}; {m['system']}"]
    if build:
        lines.append(f"{build['compiler']}: {build['flags']}")
    lines += session["versions"].get("zerotrain", [])
    others = [f"{name} {value}" for name, value in session["versions"].items() if name != "zerotrain" and value]
    if others:
        lines.append(", ".join(others))
    lines.append("load at the start " + " ".join(f"{value:.2f}" for value in session["load"]) + f", {session['started']}")
    return lines


class Others:
    """How much of the processors other programs had while something ran here: the reason for most odd figures."""

    def __init__(self):
        self.begin = self.now()

    @staticmethod
    def now():
        """Seconds of all processors: all of them, those at work, and those of this process and its finished children."""
        try:
            with open("/proc/stat") as stat:
                ticks = [int(word) for word in stat.readline().split()[1:9]]
        except (OSError, ValueError):
            return None
        per_second = os.sysconf("SC_CLK_TCK")
        idle = ticks[3] + ticks[4]
        return sum(ticks) / per_second, (sum(ticks) - idle) / per_second, sum(os.times()[:4])

    def share(self):
        """Between 0 and 1, since this was made; None where the system does not tell."""
        end = self.now()
        if self.begin is None or end is None or end[0] <= self.begin[0]:
            return None
        total, busy, own = (b - a for a, b in zip(self.begin, end))
        return min(1.0, max(0.0, (busy - own) / total))


def disturbed(runs):
    """A line if other programs had more than a tenth of the processors during some of these runs, else ""."""
    shares = [run["others"] for run in runs if run.get("others") is not None]
    many = [share for share in shares if share > 0.1]
    return (f"Other programs had {min(many):.0%} to {max(many):.0%} of the processors in {len(many)} of {len(shares)} runs: "
            "measure again when the machine is free." if many else "")
