"""Parts of scripts/gpu-check that only a card would exercise: findings of tests that end their program, traces, cards."""

import argparse
import contextlib
import io
import os
import pathlib
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts/gpu-check"))

import cards  # noqa: E402
import configs  # noqa: E402
import operation_tests  # noqa: E402
import report  # noqa: E402
import timeline  # noqa: E402
from runner import Check, Skipped, Step  # noqa: E402

# A test program as Catch2 writes its XML. "crashes" ends it; "wrong" fails; "shy" fails unless it is alone.
PROGRAM = r'''#!/usr/bin/env python3
import os, sys
names = ["right", "crashes", "shy, too", "wrong", "last"]
if "--list-test-names-only" in sys.argv:
    print("\n".join(names)); sys.exit(len(names))
wanted = [n.replace("\0", ",") for n in sys.argv[1].replace("\\,", "\0").split(",")]
out = open(sys.argv[sys.argv.index("-o") + 1], "w")
out.write("<Catch>")
failed = 0
for name in [n for n in names if n in wanted]:
    out.write(f'<TestCase name="{name}">'); out.flush()
    if name == "crashes": os.abort()
    ok = not (name == "wrong" or name == "shy, too" and len(wanted) > 1)
    if not ok:
        failed += 1
        out.write('<Expression success="false" filename="/x/tests/cuda/a_test.cpp" line="7"><Expanded>1 == 2</Expanded></Expression>')
    out.write(f'<OverallResult success="{str(ok).lower()}" durationInSeconds="0.5"/></TestCase>'); out.flush()
out.write("</Catch>")
sys.exit(failed)
'''


def make_check(folder, **facts):
    options = argparse.Namespace(build_dir=folder, emulated=True, budget=60.0, tests="", built=True, python=sys.executable)
    check = Check(options)
    check.facts.update(facts)
    return check


class OperationTests(unittest.TestCase):
    def test_a_test_that_ends_the_program_hides_no_other(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            program = pathlib.Path(folder) / "program"
            program.write_text(PROGRAM)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            check = make_check(folder, tests=program, zerotrain=program, card=None)
            check.take(Step("operations", 30, operation_tests.run))
            self.assertEqual(check.facts["operation_tests"], (2, 5))
            failures = {text: details for _, text, details in check.failures}
            self.assertIn("ended the program", failures['operation test "crashes"'])
            self.assertEqual(failures['operation test "wrong"'], "cuda/a_test.cpp:7 1 == 2")
            self.assertIn('operation test "shy, too" (passes alone)', failures)
            self.assertEqual(len(failures), 3)

    def test_output_that_breaks_off_names_the_test_that_had_begun(self):
        verdicts, begun = operation_tests.parse(
            '<Catch><TestCase name="a"><OverallResult success="true" durationInSeconds="2"/></TestCase><TestCase name="b"><Inf')
        self.assertEqual([(verdict.name, verdict.ok, verdict.seconds) for verdict in verdicts], [("a", True, 2.0)])
        self.assertEqual(begun, "b")


class Timeline(unittest.TestCase):
    WORK = [((1, 7), "kernel", 0, 1000, "product"), ((1, 7), "kernel", 1500, 2000, "norm"),
            ((1, 8), "copy", 500, 1700, "pinned to device"), ((1, 9), "kernel", 2000, 2010, "fold")]

    def test_the_part_of_a_copy_beside_kernels_is_measured(self):
        rows = {row[0]: row[1:] for row in timeline.overlap(self.WORK)}
        self.assertEqual(rows["7"][0], "compute")
        # 500 to 1000 and 1500 to 1700 of 1200 ns.
        self.assertEqual(rows["8"][0:1] + rows["8"][2:3], ("other", "58 %"))
        self.assertEqual(rows["9"][2], "0 %")

    def test_work_that_overlaps_itself_counts_once(self):
        self.assertEqual(timeline.union([(5, 7), (0, 2), (1, 3)]), [[0, 3], [5, 7]])
        self.assertEqual(timeline.common([[0, 3], [5, 7]], [[2, 6]]), 2)

    def test_both_recorders_tell_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "t.csv"
            table.write_text("kind,context,stream,start,end,name\n" + "".join(
                f'{kind},{context},{stream},{start},{end},"{name}"\n' for (context, stream), kind, start, end, name in self.WORK))
            base = sqlite3.connect(pathlib.Path(folder) / "t.sqlite")
            base.execute("create table StringIds (id, value)")
            base.execute("create table CUPTI_ACTIVITY_KIND_KERNEL (contextId, streamId, start, end, shortName)")
            base.execute("create table CUPTI_ACTIVITY_KIND_MEMCPY (contextId, streamId, start, end, srcKind, dstKind)")
            for number, ((context, stream), kind, start, end, name) in enumerate(self.WORK):
                if kind == "kernel":
                    base.execute("insert into StringIds values (?, ?)", (number, name))
                    base.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?)",
                                 (context, stream, start, end, number))
                else:
                    base.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (?, ?, ?, ?, 1, 2)",
                                 (context, stream, start, end))
            base.commit()
            base.close()
            self.assertEqual(timeline.from_csv(table), self.WORK)
            self.assertCountEqual(timeline.from_sqlite(pathlib.Path(folder) / "t.sqlite"), self.WORK)


class Steps(unittest.TestCase):
    def test_a_step_that_throws_or_takes_too_long_leaves_the_others_alone(self):
        def throws(_):
            raise ValueError("broken")

        def hangs(check):
            result = check.run(["sh", "-c", "sleep 60 & wait"], 2)
            self.assertTrue(result.timed_out)
            check.fail("it hung", result.why())

        def impossible(_):
            raise Skipped("no such thing")

        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            check = make_check(folder)
            for step in (Step("one", 5, throws), Step("two", 5, hangs), Step("three", 5, impossible),
                         Step("four", 5, lambda check: check.table(("a", "b"), [(1, "x|y")]))):
                check.take(step)
            text = report.write(check, pathlib.Path(folder) / "r.md", finished=True)
        self.assertEqual([failure[:2] for failure in check.failures], [("one", "ValueError: broken"), ("two", "it hung")])
        self.assertIn("- three: no such thing", text)
        self.assertIn("| 1 | x\\|y |", text)
        self.assertLess(text.index("it hung"), text.index("## four"))

    def test_a_report_of_a_check_that_was_stopped_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            check = make_check(folder)
            check.step = "Build"
            self.assertIn('UNFINISHED: the check was stopped in the step "Build"',
                          report.write(check, pathlib.Path(folder) / "r.md", finished=False))


class Packages(unittest.TestCase):
    """dependencies.sh: packages are unpacked without root, with dpkg or without, and found where they lie."""

    SCRIPT = """
        set -eu
        . "$1"
        if [ "$4" = without ]; then
          command() { [ "$2" != dpkg-deb ] && builtin command "$@"; }
        fi
        unpack_packages "$2" "$3"
        settle_packages "$3"
        use_prefix "$3"
        cat "$3/usr/share/pkgconfig/thing.pc" "$3/usr/lib/libthing.so"
        echo "$CMAKE_PREFIX_PATH $PKG_CONFIG_PATH"
    """

    def make_package(self, folder):
        """A .deb whose .pc file names /usr and whose library is linked to by its full path."""
        content = folder / "content"
        (content / "usr/lib").mkdir(parents=True)
        (content / "usr/share/pkgconfig").mkdir(parents=True)
        (content / "lib").mkdir()
        (content / "lib/libthing.so.1").write_text("a library\n")
        (content / "usr/lib/libthing.so").symlink_to("/lib/libthing.so.1")
        (content / "usr/share/pkgconfig/thing.pc").write_text("prefix=/usr\n")
        (folder / "control").write_text("Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: nobody\n")
        (folder / "debian-binary").write_text("2.0\n")
        for command in (["tar", "-cJf", "data.tar.xz", "-C", "content", "."], ["tar", "-cJf", "control.tar.xz", "control"],
                        ["ar", "rc", "packages/thing.deb", "debian-binary", "control.tar.xz", "data.tar.xz"]):
            subprocess.run(command, cwd=folder, check=True)

    def test_unpacked_packages_are_found_where_they_lie(self):
        source = pathlib.Path(__file__).resolve().parents[1] / "scripts/gpu-check/dependencies.sh"
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "packages").mkdir()
            self.make_package(folder)
            for dpkg in ("with", "without") if shutil.which("dpkg-deb") else ("without",):
                root = folder / dpkg
                result = subprocess.run(["bash", "-c", self.SCRIPT, "bash", source, folder / "packages", root, dpkg],
                                        capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(result.stdout, f"prefix={root}/usr\na library\n{root}/usr {root}/usr/share/pkgconfig\n")

    def test_a_folder_without_packages_is_named(self):
        source = pathlib.Path(__file__).resolve().parents[1] / "scripts/gpu-check/dependencies.sh"
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run(["bash", "-c", '. "$1"; unpack_packages "$2" "$2/root"', "bash", source, folder],
                                    capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("has no .deb files; scripts/gpu-check-pack.sh collects them", result.stderr)


class Cards(unittest.TestCase):
    def test_names_of_nvidia_smi_find_their_data_sheet(self):
        for name, products in (("NVIDIA H200", 989.4), ("NVIDIA H100 80GB HBM3", 989.4), ("NVIDIA H100 PCIe", 756.4),
                               ("NVIDIA H200 NVL", 835.5), ("NVIDIA GH200 480GB", 989.4), ("NVIDIA B200", 2250.0),
                               ("NVIDIA GB200", 2500.0), ("NVIDIA A100-SXM4-80GB", 312.0), ("NVIDIA A100-SXM4-40GB", 312.0)):
            self.assertEqual(cards.peak(name)[0], products, name)
        self.assertEqual(cards.peak("NVIDIA A100-SXM4-40GB")[1], 1555)
        self.assertIsNone(cards.peak("NVIDIA TITAN V"))

    def test_flops_of_a_token_are_those_of_the_published_figure(self):
        # llm.c: 46.8 thousand tokens/s of the 1.5B model are 460 TFLOP/s a GPU.
        rate = 46.8e3 * configs.flops_per_token(configs.SHAPES["1.5B"]) * 1e-12
        self.assertAlmostEqual(rate, 460, delta=5)


if __name__ == "__main__":
    unittest.main()
