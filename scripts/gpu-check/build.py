"""Step 2: the program, its backend for this card, their tests and the tools of the later steps.

Leaves in check.facts: zerotrain, tests, operations_bench, trace_library, each a path or None.
"""

import pathlib
import re
import shutil

from runner import Skipped

# What the later steps use -> target, file in the build folder.
CARD = {
    "zerotrain": ("zerotrain", "zerotrain"),
    "backend": ("zerotrain_cuda", "libzerotrain_cuda.so"),
    "operations_bench": ("gpu_operations", "gpu_operations"),
    "trace_library": ("gpu_trace", "libgpu_trace.so"),
    "tests": ("cuda_backend_test_gpu", "tests/cuda_emulation/cuda_backend_test_gpu"),
}
EMULATED = {
    "zerotrain": ("zerotrain", "zerotrain"),
    "backend": ("zerotrain_cuda_emulated", "tests/cuda_emulation/libzerotrain_cuda_emulated.so"),
    "operations_bench": ("gpu_operations", "gpu_operations"),
    "tests": ("cuda_backend_test", "tests/cuda_emulation/cuda_backend_test"),
}


def configure(check, with_tests):
    command = ["cmake", "-S", check.source, "-B", check.build, "-DCMAKE_BUILD_TYPE=Release", "-DZEROTRAIN_BENCH=ON",
               f"-DZEROTRAIN_TESTS={'ON' if with_tests else 'OFF'}"]
    if shutil.which("ninja") and not (check.build / "Makefile").exists():
        command += ["-G", "Ninja"]
    if check.emulated:
        command += ["-DZEROTRAIN_CUDA_EMULATION=ON", "-DZEROTRAIN_CUDA=OFF"]
    else:
        command += ["-DZEROTRAIN_CUDA=ON", f"-DCMAKE_CUDA_ARCHITECTURES={check.facts['capability'] or '90'}"]
    environment = {"CUDA_HOME": check.facts["cuda_home"] or ""}
    if check.facts["nccl_root"]:
        environment["NCCL_ROOT"] = check.facts["nccl_root"]
    return check.run(command, 90, env=environment, directory=check.source, log="configure.log")


def first_errors(text):
    """The lines of a build's output that say what was wrong."""
    lines = text.splitlines()
    wanted = [line for line in lines if re.search(r"\berror\b|FAILED|undefined reference|not found", line)]
    return "\n".join((wanted or lines[-15:])[:15])


def locate(check, parts):
    """Paths of what is built; None for what is not."""
    found = {}
    for fact, (target, name) in parts.items():
        path = check.build / name
        if not path.exists():
            matches = sorted(check.build.rglob(pathlib.Path(name).name))
            path = next((match for match in matches if match.is_file()), None)
        found[fact] = path
    check.facts.update({"trace_library": None, **found})
    return found


def run(check):
    parts = EMULATED if check.emulated else CARD
    check.facts["not_expected"] = {}
    if not check.options.built and not check.emulated and not check.facts["cuda_home"]:
        raise Skipped("the CUDA toolkit is missing")
    if not check.options.built:
        build(check, parts)
    found = locate(check, parts)
    rows = [(target, found[fact].relative_to(check.build) if found[fact] else "MISSING")
            for fact, (target, _) in parts.items()]
    check.table(("target", "file"), rows)
    for fact, (target, _) in parts.items():
        if found[fact] is None and fact in check.facts["not_expected"]:
            check.skip(target, check.facts["not_expected"][fact])
        elif found[fact] is None:
            check.fail(f"{target} was not built")
    if not found["zerotrain"] or not found["backend"]:
        check.facts["zerotrain"] = None
        return
    check.environment["ZEROTRAIN_CUDA_BACKEND"] = str(found["backend"])
    if check.emulated:
        check.environment["ZEROTRAIN_NCCL"] = str(found["backend"])
    version = check.run([found["zerotrain"], "--version"], 20)
    if version.ok:
        check.say("```\n" + version.output.strip() + "\n```")
    else:
        check.fail("zerotrain --version failed", version.why())
        check.facts["zerotrain"] = None


def build(check, parts):
    if not shutil.which("cmake"):
        raise Skipped("cmake is missing")
    configured = configure(check, with_tests=True)
    if not configured.ok and "Catch2" in configured.output + configured.errors:
        check.facts["not_expected"]["tests"] = "Catch2 is missing, with which the tests of operations are built"
        configured = configure(check, with_tests=False)
    if not configured.ok:
        check.fail("cmake could not configure the build", configured.why())
        return
    check.say("\n".join(f"- {line[3:]}" for line in configured.output.splitlines()
                        if line.startswith("-- ") and re.search("CUDA backend|emulat|NCCL|traces", line)))
    check.say()
    left_out = re.search("Tests on emulated GPUs are left out: (.*)", configured.output)
    if left_out:
        check.facts["not_expected"].setdefault("tests", f"its folder is left out of the build: {left_out.group(1)}")
    if "trace_library" in parts and "traces are left out" in configured.output:
        check.facts["not_expected"]["trace_library"] = "CUPTI is missing, which records what runs when"
    keep_going = ["--", "-k", "0"] if (check.build / "build.ninja").exists() else ["--", "-k"]
    targets = [target for fact, (target, _) in parts.items() if fact not in check.facts["not_expected"]]
    built = check.run(["cmake", "--build", check.build, "--parallel", check.options.jobs, "--target", *targets, *keep_going],
                      check.left(), directory=check.source, log="build.log")
    check.say(f"Configured in {configured.seconds:.0f} s, built in {built.seconds:.0f} s with {check.options.jobs} jobs.")
    check.say()
    if not built.ok:
        check.fail("the build " + ("took too long" if built.timed_out else "failed"),
                   first_errors(built.output + built.errors))
