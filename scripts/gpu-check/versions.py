"""Step 1: what the machine has. Leaves in check.facts: card, capability, memory, cuda_home, torch, mpirun, sanitizer, nsys."""

import ctypes
import glob
import json
import os
import pathlib
import platform
import re
import shutil

CARD_FIELDS = ["name", "driver_version", "compute_cap", "memory.total", "memory.used", "clocks.sm", "clocks.max.sm",
               "clocks.mem", "power.limit", "temperature.gpu", "ecc.mode.current"]


def read_cards(check):
    program = shutil.which("nvidia-smi")
    if not program:
        return None, "nvidia-smi is missing: no NVIDIA driver is installed"
    result = check.run([program, "--query-gpu=" + ",".join(CARD_FIELDS), "--format=csv,noheader"], 20)
    if not result.ok or not result.output.strip():
        return None, "nvidia-smi sees no GPU: " + (result.output + result.errors).strip()
    rows = [[cell.strip() for cell in line.split(",")] for line in result.output.strip().splitlines()]
    return [dict(zip(CARD_FIELDS, row)) for row in rows], ""


def other_users(check):
    result = check.run(["nvidia-smi", "--query-compute-apps=pid,name,used_memory", "--format=csv,noheader"], 20)
    return result.output.strip() if result.ok else ""


def first_line(check, command, pattern=None):
    """The first line, or the first match of the pattern, of what a program says of its version."""
    if not shutil.which(command[0]):
        return None
    result = check.run(command, 20)
    text = result.output + result.errors
    if pattern:
        found = re.search(pattern, text)
        return found.group(0) if found else None
    return text.strip().splitlines()[0] if text.strip() else None


def library_version(path, function, decode):
    """Calls `function`, of cuBLASLt or NCCL, in a library file."""
    try:
        library = ctypes.CDLL(str(path))
        if function == "ncclGetVersion":
            number = ctypes.c_int()
            if library.ncclGetVersion(ctypes.byref(number)) != 0:
                return None
            return decode(number.value)
        getattr(library, function).restype = ctypes.c_size_t
        return decode(getattr(library, function)())
    except (OSError, AttributeError):
        return None


def nccl_text(number):
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def cublaslt_text(number):
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def python_facts(check):
    """Where the interpreter that may have PyTorch keeps packages, and its PyTorch."""
    code = ("import json, sys, sysconfig, site\n"
            "folders = [p for p in sys.path if p.endswith('-packages')]\n"
            "answer = {'folders': folders, 'python': sys.version.split()[0]}\n"
            "try:\n"
            "    import torch\n"
            "    answer['torch'] = torch.__version__\n"
            "    answer['torch_cuda'] = bool(torch.cuda.is_available())\n"
            "except Exception as error:\n"
            "    answer['torch_error'] = f'{type(error).__name__}: {error}'\n"
            "print(json.dumps(answer))\n")
    result = check.run([check.options.python, "-c", code], 60, environment=check.plain_environment)
    try:
        return json.loads(result.output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"folders": [], "torch_error": result.why()}


def find_library(name, folders):
    for folder in folders:
        for path in sorted(glob.glob(str(pathlib.Path(folder) / name))):
            return path
    return None


def find_nccl(check, packages, cuda_home):
    """NCCL's library and the folder with include/nccl.h: of the system, the toolkit or Python's wheels."""
    named = check.environment.get("ZEROTRAIN_NCCL")
    wheels = [str(pathlib.Path(folder) / "nvidia/nccl") for folder in packages]
    roots = [os.environ.get("NCCL_ROOT", ""), cuda_home or "", "/usr", *wheels]
    header = next((root for root in roots if root and (pathlib.Path(root) / "include/nccl.h").exists()), None)
    if named:
        return named, header, "ZEROTRAIN_NCCL"
    try:
        ctypes.CDLL("libnccl.so.2")
        return "libnccl.so.2", header, "the system's"
    except OSError:
        pass
    triplet = f"{platform.machine()}-linux-gnu"
    folders = [f"{root}/{sub}" for root in roots if root for sub in ("lib", "lib64", f"lib/{triplet}")]
    path = find_library("libnccl.so.2", folders)
    return path, header, "not on the loader's path" if path else ""


def cuda_folder():
    candidates = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    compiler = shutil.which("nvcc")
    if compiler:
        candidates.insert(2, str(pathlib.Path(compiler).resolve().parents[1]))
    return next((folder for folder in candidates if folder and (pathlib.Path(folder) / "bin/nvcc").exists()), None)


def tool(name, cuda_home):
    """A program on the path or in the toolkit's folder."""
    found = shutil.which(name)
    if not found and cuda_home and (pathlib.Path(cuda_home) / "bin" / name).exists():
        found = str(pathlib.Path(cuda_home) / "bin" / name)
    return found


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def system_name():
    try:
        text = pathlib.Path("/etc/os-release").read_text()
        return re.search(r'PRETTY_NAME="?([^"\n]*)', text).group(1)
    except (OSError, AttributeError):
        return platform.platform()


def report_cards(check, rows):
    facts = check.facts
    cards, problem = read_cards(check)
    facts["card"] = None
    if check.emulated:
        facts["card"], facts["capability"] = None, None
        check.notes.append("Emulated GPUs: kernels ran on the CPU; nothing here says how fast they are." +
                           ("" if cards else " No GPU was seen."))
    elif cards is None:
        check.fail("no GPU was seen: " + problem)
        check.notes.append("No GPU was seen: steps that need one are left out.")
    if cards:
        card = cards[0]
        facts["card"] = card["name"]
        facts["capability"] = card["compute_cap"].replace(".", "")
        facts["memory"] = float(card["memory.total"].split()[0]) * 2**20
        rows.append(("card", card["name"] + (f" (the first of {len(cards)})" if len(cards) > 1 else "")))
        rows.append(("driver", card["driver_version"]))
        rows.append(("compute capability", card["compute_cap"]))
        rows.append(("memory", f"{card['memory.total']}, {card['memory.used']} in use before"))
        rows.append(("clocks", f"SM {card['clocks.sm']} (at most {card['clocks.max.sm']}), memory {card['clocks.mem']}"))
        rows.append(("power limit, temperature", f"{card['power.limit']}, {card['temperature.gpu']} °C"))
        rows.append(("ECC", card["ecc.mode.current"]))
        users = other_users(check)
        if users:
            check.notes.append("Other programs were using the card; times are not those of a card alone: " +
                               users.replace("\n", "; "))


def run(check):
    facts, rows = check.facts, []
    report_cards(check, rows)
    facts["cuda_home"] = cuda_folder()
    python = python_facts(check)
    facts["torch"] = python.get("torch") if python.get("torch_cuda") else None
    facts["torch_problem"] = python.get("torch_error") or "PyTorch sees no GPU"

    if facts["cuda_home"]:
        nvcc = str(pathlib.Path(facts["cuda_home"]) / "bin/nvcc")
        rows.append(("CUDA toolkit", f"{first_line(check, [nvcc, '--version'], r'release [0-9.]+, V[0-9.]+')}, "
                                     f"{facts['cuda_home']}"))
    else:
        rows.append(("CUDA toolkit", "none: nvcc is neither on the path nor in CUDA_HOME nor in /usr/local/cuda"))
    libraries = [f"{facts['cuda_home']}/lib64", f"{facts['cuda_home']}/lib"] if facts["cuda_home"] else []
    cublaslt = find_library("libcublasLt.so.1[3-9]", libraries) or "libcublasLt.so.13"
    version = library_version(cublaslt, "cublasLtGetVersion", cublaslt_text)
    rows.append(("cuBLASLt", version or "not found"))

    path, header, origin = find_nccl(check, python.get("folders", []), facts["cuda_home"])
    facts["nccl"] = library_version(path, "ncclGetVersion", nccl_text) if path else None
    facts["nccl_root"] = header
    if path and origin == "not on the loader's path":
        check.environment["ZEROTRAIN_NCCL"] = path
    rows.append(("NCCL", f"{facts['nccl']} ({path})" if facts["nccl"] else "not found"))
    rows.append(("nccl.h", f"{header}/include" if header else "not found: the build has no NCCL"))

    compiler = os.environ.get("CXX", "g++")
    rows.append(("C++ compiler", first_line(check, [compiler, "--version"]) or f"{compiler} is missing"))
    rows.append(("CMake, Ninja", f"{first_line(check, ['cmake', '--version'], r'[0-9]+[.][0-9.]+') or 'missing'}, "
                                 f"{first_line(check, ['ninja', '--version']) or 'missing (make is used)'}"))
    facts["mpirun"] = shutil.which("mpirun", path=check.environment.get("PATH"))
    rows.append(("MPI", first_line(check, [facts["mpirun"], "--version"]) if facts["mpirun"] else "none"))
    rows.append(("Python", f"{python.get('python', '?')} ({check.options.python})"))
    rows.append(("PyTorch", python.get("torch", "none") + ("" if facts["torch"] else f" ({facts['torch_problem']})")))
    facts["sanitizer"], facts["nsys"] = tool("compute-sanitizer", facts["cuda_home"]), tool("nsys", facts["cuda_home"])
    rows.append(("compute-sanitizer", facts["sanitizer"] or "none"))
    rows.append(("nsys", first_line(check, [facts["nsys"], "--version"]) if facts["nsys"] else "none"))
    rows.append(("system", f"{system_name()}, Linux {platform.release()}"))
    rows.append(("processor", f"{processor()}, {os.cpu_count()} cores"))
    commit = first_line(check, ["git", "-C", str(check.source), "rev-parse", "--short", "HEAD"])
    facts["commit"] = commit if commit and re.fullmatch(r"[0-9a-f]{7,40}", commit) else "unknown"
    check.table(("what", "found"), rows)
    if not facts["cuda_home"] and not check.emulated:
        check.fail("the CUDA toolkit 13 is missing: nothing can be built for a card")
