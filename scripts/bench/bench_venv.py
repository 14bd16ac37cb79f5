"""The interpreter that runs PyTorch and DeepSpeed: one that is named, or a virtual environment made outside the repository."""

import json
import os
import pathlib
import subprocess
import sys

from bench_support import ROOT, BenchError, say

PROBE = """
import importlib.metadata as metadata, json
found = {}
for name in ("torch", "deepspeed"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def default_folder():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "zerotrain" / "bench-venv"


def versions_in(python):
    try:
        result = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else None
    except (OSError, ValueError):
        return None


def pip(python, log, *words):
    """Through whatever index pip is configured for."""
    result = subprocess.run([python, "-m", "pip", "install", "--progress-bar", "off", *words], stdout=log,
                            stderr=subprocess.STDOUT, env={**os.environ, "DS_BUILD_OPS": "0"}, check=False)
    return result.returncode == 0


def interpreter(python, folder, extra):
    """Path of an interpreter with torch, and the versions of what is there. `python`: use this one, install nothing.
    `folder`: of the virtual environment, made or completed where need be. `extra`: further words for pip."""
    if python:
        versions = versions_in(python)
        if not versions or "torch" not in versions:
            raise BenchError(f"{python} has no torch; leave --python away for an environment of the bench's own")
        return python, versions
    folder = pathlib.Path(folder or default_folder()).resolve()
    if folder == ROOT or ROOT in folder.parents:
        raise BenchError(f"{folder} lies in the repository; name a folder outside it with --venv")
    inside = folder / "bin/python"
    versions = versions_in(inside) or {}
    if {"torch", "deepspeed"} <= versions.keys():
        return inside, versions
    say(f"installing PyTorch and DeepSpeed in {folder} (pip's own configuration says from where)")
    folder.mkdir(parents=True, exist_ok=True)
    log_path = folder / "install.log"
    with open(log_path, "w") as log:
        if not inside.exists() and subprocess.run([sys.executable, "-m", "venv", folder], stdout=log,
                                                  stderr=subprocess.STDOUT, check=False).returncode != 0:
            raise BenchError(f"no virtual environment could be made: see {log_path} (Debian: apt-get install python3-venv)")
        if "torch" not in versions and not pip(inside, log, *extra, "torch", "numpy", "setuptools", "wheel"):
            raise BenchError(f"pip could not install torch: see {log_path}")
        # DeepSpeed's set-up asks the torch that is there; no operation of it is compiled.
        if "deepspeed" not in versions and not pip(inside, log, *extra, "--no-build-isolation", "deepspeed"):
            say(f"pip could not install deepspeed (see {log_path}): it is left out")
    versions = versions_in(inside)
    if not versions or "torch" not in versions:
        raise BenchError(f"{inside} cannot load torch: see {log_path}")
    return inside, versions
