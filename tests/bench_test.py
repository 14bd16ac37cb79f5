"""The benches of scripts/bench: quick runs of what needs zerotrain alone, and tables of made-up records.

    bench_test.py --build-dir BUILD --out FOLDER
"""

import argparse
import json
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(__file__).resolve().parents[1]
BENCH = SOURCE / "scripts/bench"
sys.path.insert(0, str(BENCH))

import bench_support
import bench_venv
import predictions
import stages_table
import versus_pytorch
import versus_table

BUILD = OUT = None


def bench(name, *words):
    return subprocess.run([sys.executable, str(BENCH / f"{name}.py"), "--build", str(BUILD), *map(str, words)],
                          capture_output=True, text=True, timeout=150, check=False)


def recorded(name, *words, status=0):
    """Runs a bench that must end with this code; its record and its table."""
    path = OUT / f"{name}.json"
    path.unlink(missing_ok=True)
    result = bench(name, "--quick", "--json", path, *words)
    assert result.returncode == status, result.stdout + result.stderr
    return json.loads(path.read_text()), result.stdout


def run_of(program, rate, against=None, round_number=1, **more):
    run = {"model": "char", "dtype": "fp32", "ranks": 1, "program": program, "against": against, "unit": "tokens/s",
           "round": round_number, "session": 0}
    if rate is not None:
        run |= {"rate": rate, "peak_resident": 1000e6, "seconds_to_first_step": 0.25, "seconds_to_first_result": 1.0}
    return run | more


def cells(text, *first):
    """Cells of the row of a Markdown table that holds these."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return next(row for row in rows if all(word in row for word in first))


class Statement(unittest.TestCase):
    def holds(self, content, bench_name):
        self.assertEqual(content["bench"], bench_name)
        session, = content["sessions"]
        self.assertTrue(session["machine"]["cpu"])
        self.assertGreaterEqual(session["machine"]["cores"], 1)
        self.assertGreater(session["machine"]["memory_bytes"], 0)
        self.assertIn("-ffp-contract=off", session["build"]["flags"])
        self.assertTrue(session["versions"]["zerotrain"][0].startswith("zerotrain "))
        self.assertEqual(len(session["load"]), 3)


class Stages(Statement):
    def test_a_quick_run_records_each_stage_and_number_of_ranks(self):
        content, text = recorded("stages")
        self.holds(content, "stages")
        runs = {(run["ranks"], run["stage"]): run for run in content["runs"] if run["kind"] == "stage"}
        self.assertEqual(sorted(runs), [(ranks, stage) for ranks in (1, 2) for stage in range(4)])
        for (ranks, stage), run in runs.items():
            self.assertNotIn("problem", run)
            self.assertGreater(run["rate"], 0)
            self.assertGreater(run["seconds_to_first_step"], 0)
            self.assertEqual((len(run["planned"]), len(run["resident"])), (ranks, ranks))
            self.assertEqual(run["bytes_sent_per_step"] > 0, ranks > 1)
            self.assertEqual(run["batch"], 16)
        # The same batch at every stage of as many ranks: the same training.
        for ranks in (1, 2):
            self.assertEqual(len({runs[ranks, stage]["weights_checksum"] for stage in range(4)}), 1)
        orders = [(run["stage"], run["order"]) for run in content["runs"] if run["kind"] == "order"]
        self.assertEqual(orders, [(0, "global"), (0, "local"), (1, "global"), (1, "local")])
        self.assertIn("to stage 0", text)

    def test_growth_varies_one_key_at_a_time(self):
        content, text = recorded("stages", "--growth", "--markdown")
        grown = [(run["key"], run["value"], run["tokens"]) for run in content["runs"]]
        self.assertEqual(grown, [("n_embd", 64, 512), ("n_embd", 128, 512), ("n_positions", 32, 512),
                                 ("n_positions", 64, 512), ("vocab_size", 65, 512), ("vocab_size", 130, 512)])
        self.assertNotIn("tokens/s", text)
        self.assertGreater(float(cells(text, "n_embd", "128")[6]), 1.0)  # operations a token

    def test_a_run_that_fails_is_a_line_below_the_table(self):
        content, text = recorded("stages", "--ranks", "1", "--stages", "0", "--set", "model.n_head=3", status=1)
        self.assertIn("problem", content["runs"][0])
        self.assertIn("n_head", text)

    def test_ratios_are_of_medians(self):
        def stage(ranks, number, rate):
            return {"kind": "stage", "preset": "char", "dtype": "fp32", "ranks": ranks, "stage": number, "rate": rate,
                    "planned": [20e6], "resident": [30e6], "bytes_sent_per_step": 5e5, "utilization": 0.5,
                    "planned_by_category": {}, "flops_per_second": 1e9}
        runs = [stage(2, 0, rate) for rate in (90.0, 100.0, 1000.0)] + [stage(2, 3, 95.0), stage(4, 0, 70.0)]
        text = stages_table.render(runs, {"4 ranks / 2 ranks, stage 0": "0.7"}, markdown=True)
        self.assertEqual(cells(text, "3")[4:6], ["0.95", "1.00"])
        self.assertEqual(cells(text, "4 ranks / 2 ranks, stage 0")[3:], ["0.70", "0.7"])


class Predictions(Statement):
    def test_a_quick_run_predicts_each_stage_and_fewer_ranks(self):
        content, text = recorded("predictions")
        self.holds(content, "predictions")
        self.assertEqual([(run["kind"], run["ranks"], run["stage"]) for run in content["runs"] if run["kind"] == "stage"],
                         [("stage", ranks, stage) for ranks in (1, 2) for stage in (1, 0, 2, 3)])
        for run in content["runs"]:
            self.assertGreater(run["predicted"], 0)
            self.assertGreater(run["measured"], 0)
        self.assertIn("predicted / measured", text)

    def test_ratios_are_of_medians(self):
        runs = [{"preset": "char", "from": "2 ranks, stage 1", "ranks": 2, "stage": 3, "predicted": predicted,
                 "measured": measured} for predicted, measured in ((1.0, 2.0), (1.5, 2.0), (9.0, 2.0))]
        text = predictions.render(runs, None, markdown=True)
        self.assertEqual(cells(text, "char")[2:], ["2", "3", "3", "0.75"])


class Operations(Statement):
    def test_a_quick_run_holds_operations_against_products_or_memory(self):
        content, text = recorded("operations", "--threads", "1")
        self.holds(content, "operations")
        self.assertEqual([run["dtype"] for run in content["runs"]], ["fp32", "bf16", "fp16"])
        for run in content["runs"]:
            self.assertEqual((run["shape"], run["threads"]), ("tiny", 1))
            self.assertTrue(all(value > 0 for value in run["ceilings"].values()))
            bounds = {op["operation"]: op for op in run["operations"]}
            self.assertEqual(len(bounds), len(run["operations"]))
            for name in ("first of the MLP, forward", "head, d weight", "attention, backward"):
                self.assertEqual(bounds[name]["bound"], "product")
                self.assertGreater(bounds[name]["of_plain_product"], 0)
            for name in ("AdamW", "GELU, backward", "cross entropy and gradient", "residual and norm, forward"):
                self.assertEqual(bounds[name]["bound"], "memory")
                self.assertGreater(min(bounds[name]["of_memory"], bounds[name]["of_copy"]), 0)
        self.assertIn("of memory", text)

    def test_a_record_is_added_to_and_read_again(self):
        path = OUT / "added.json"
        path.unlink(missing_ok=True)
        for dtype in ("fp32", "bf16"):
            words = ["--quick", "--only", "AdamW", "--dtypes", dtype, "--threads", "1", "--json", path, "--add"]
            self.assertEqual(bench("operations", *words).returncode, 0)
        self.assertEqual([run["session"] for run in json.loads(path.read_text())["runs"]], [0, 1])
        result = bench("operations", "--from", path, "--markdown")
        self.assertEqual(result.stdout.count("| AdamW |"), 1)
        self.assertEqual(result.stdout.count(" cores, "), 1)  # both sessions ran on one machine, which is told once
        wrong = bench("stages", "--from", path)
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("is a record of operations, not of stages", wrong.stderr)


class VersusPyTorch(unittest.TestCase):
    def test_ratios_are_of_medians_and_the_best_single_process_is_named(self):
        runs = [run_of("zerotrain", rate, round_number=i) for i, rate in enumerate((200.0, 240.0, 900.0))]
        runs += [run_of("PyTorch eager", rate, "zerotrain", i, peak_resident=2000e6, seconds_to_first_step=3.0)
                 for i, rate in enumerate((100.0, 120.0, 50.0))]
        runs += [run_of("PyTorch compiled", 160.0, "zerotrain", i, peak_resident=4000e6) for i in range(3)]
        goals = {"char fp32, 1: best of eager and compiled": "speed 2.3"}
        text = versus_table.render(runs, goals, markdown=True)
        self.assertEqual(cells(text, "PyTorch eager"), ["char", "fp32", "1", "zerotrain", "PyTorch eager", "2.40",
                                                        "2.00-18.00", "0.50", "1000 / 2000", "0.25 / 3.00", ""])
        self.assertEqual(cells(text, "best of eager and compiled")[5:8], ["1.50", "1.25-5.62", "0.25"])
        self.assertEqual(cells(text, "best of eager and compiled")[-1], "speed 2.3")
        plain = versus_table.render(runs)
        self.assertIn("240 tokens/s", plain)
        self.assertNotIn("goal", plain)

    def test_each_peer_is_held_against_its_own_stage(self):
        runs = [run_of(f"zerotrain stage {stage}", 100.0 * (stage + 1), ranks=2) for stage in range(4)]
        runs += [run_of("DDP", 50.0, "zerotrain stage 0", ranks=2), run_of("FSDP2", 50.0, "zerotrain stage 3", ranks=2),
                 run_of("DeepSpeed stage 1", 50.0, "zerotrain stage 1", ranks=2)]
        text = versus_table.render(runs, markdown=True)
        self.assertEqual(cells(text, "FSDP2")[3], "zerotrain stage 3")
        self.assertEqual([cells(text, name)[5] for name in ("DDP", "FSDP2", "DeepSpeed stage 1")], ["2.00", "8.00", "4.00"])
        for ranks in (1, 2):  # what the bench runs holds together, too
            programs = versus_pytorch.programs_of("char", "bf16", ranks)
            names = [program["name"] for program in programs]
            self.assertEqual(len(set(names)), len(names))
            self.assertTrue(all(p["against"] in names for p in programs if p.get("against")))

    def test_chosen_programs_bring_what_they_are_held_against(self):
        def names(words, ranks):
            return [p["name"] for p in versus_pytorch.chosen(versus_pytorch.programs_of("char", "fp32", ranks), words)]
        self.assertEqual(names(["PyTorch eager"], 1), ["zerotrain", "PyTorch eager"])
        self.assertEqual(names(["checkpointing"], 1), ["zerotrain, checkpointing", "PyTorch eager, checkpointing"])
        self.assertEqual(names(["fsdp2", "DeepSpeed stage 3"], 2), ["zerotrain stage 3", "FSDP2", "DeepSpeed stage 3"])
        self.assertEqual(names(["zerotrain stage 0"], 2), ["zerotrain stage 0", "zerotrain stage 3"])
        self.assertEqual(len(names([], 2)), 10)

    def test_a_peer_that_cannot_run_is_a_line_with_its_reason(self):
        texts = ["Traceback\n[rank0]:     raise ValueError(x)\n[rank0]: ValueError: Type fp16 is not supported here.\n", ""]
        result = versus_pytorch.read_peer(texts, 0.0)
        self.assertIn("Type fp16 is not supported here.", result["problem"])
        runs = [run_of("zerotrain", 100.0), run_of("DeepSpeed stage 0", None, "zerotrain", **result)]
        text = versus_table.render(runs)
        self.assertIn("char fp32, 1 rank, DeepSpeed stage 0: ValueError: Type fp16 is not supported here.", text)
        self.assertEqual(versus_table.render(runs).count("DeepSpeed"), 1)

    def test_times_of_a_peer_are_counted_from_its_start(self):
        line = json.dumps({"step_seconds": [1.0], "first_step_at": 103.5, "first_result_at": 105.0})
        result = versus_pytorch.read_peer([f"a library says something\n{line}\nmore\n", ""], 100.0)
        self.assertEqual((result["seconds_to_first_step"], result["seconds_to_first_result"]), (3.5, 5.0))

    def test_ranks_end_together_when_one_fails(self):
        code = "import os, time\nif os.environ['RANK'] == '1': raise SystemExit('RuntimeError: rank 1 has no network')\n"
        result = versus_pytorch.run_processes([sys.executable, "-c", code + "time.sleep(100)"], {}, 2, 50.0)
        self.assertIn("rank 1 has no network", result["problem"])

    def test_mistakes_end_with_2_and_say_what_is_allowed(self):
        for words, text in ((["--presets", "chars"], "allowed are char, 124m, tiny, mlp"),
                            (["--ranks", "two"], "numbers with commas"), (["--steps", "3"], "are not timed"),
                            (["--venv", BENCH / "venv"], "outside it with --venv"),
                            (["--python", "/nowhere/python"], "has no torch")):
            result = bench("versus_pytorch", *words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(text, result.stderr)
        self.assertNotIn(SOURCE, bench_venv.default_folder().parents)


class Goals(unittest.TestCase):
    def test_each_goal_names_a_row_that_a_bench_makes(self):
        goals = json.loads(bench_support.GOALS.read_text())
        for name in goals["versus_pytorch"]:
            contest, peer = name.split(": ")
            model, dtype, ranks = contest.replace(",", "").split()
            programs = [p["name"] for p in versus_pytorch.programs_of(model, dtype, int(ranks))]
            self.assertIn(peer, [*programs, versus_table.BEST])


class Pages(unittest.TestCase):
    def test_a_table_replaces_what_is_between_the_marks(self):
        page, record = OUT / "page.md", OUT / "page.json"
        marks = "<!-- Below: written by scripts/bench/versus_pytorch.py -->\n{}" \
                "<!-- End of what scripts/bench/versus_pytorch.py wrote -->\n"
        page.write_text("# Before\n" + marks.format("old\n") + "after\n")
        session = {"machine": bench_support.machine(), "build": {}, "versions": {}, "load": [0.0] * 3, "started": "today"}
        record.write_text(json.dumps({"bench": "versus_pytorch", "sessions": [session],
                                      "runs": [run_of("zerotrain", 10.0), run_of("DDP", 5.0, "zerotrain")]}))
        for _ in range(2):  # the second time what the first has put there
            result = bench("versus_pytorch", "--from", record, "--into", page)
            self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
            text = page.read_text()
            self.assertTrue(text.startswith("# Before\n<!-- Below") and text.endswith("wrote -->\nafter\n"), text)
            self.assertEqual((text.count("| DDP | 2.00 |"), text.count("old")), (1, 0))
        page.write_text("no marks\n")
        self.assertEqual(bench("versus_pytorch", "--from", record, "--into", page).returncode, 2)

    def test_the_performance_pages_have_a_place_for_each_bench(self):
        for page in ("docs/performance.md", "docs/performance-avx2.md"):
            text = (SOURCE / page).read_text()
            for name in ("versus_pytorch", "stages", "collectives", "operations"):
                self.assertEqual(text.count(f"scripts/bench/{name}.py -->"), 1)
                self.assertEqual(text.count(f"scripts/bench/{name}.py wrote -->"), 1)
        self.assertEqual((SOURCE / "docs/scaling.md").read_text().count("scripts/bench/predictions.py -->"), 1)


class Help(unittest.TestCase):
    def test_each_bench_explains_itself(self):
        for name in ("versus_pytorch", "stages", "collectives", "operations", "predictions"):
            result = bench(name, "--help")
            self.assertEqual(result.returncode, 0, result.stderr)
            for option in ("--quick", "--json FILE", "--add", "--from FILE", "--markdown", "--into PAGE", "--goals"):
                self.assertIn(option, result.stdout)


class OtherPrograms(unittest.TestCase):
    def test_what_they_had_of_the_processors_is_told(self):
        self.assertEqual(bench_support.disturbed([{"others": 0.05}, {"others": None}, {}]), "")
        self.assertIn("20% to 40% of the processors in 2 of 3 runs",
                      bench_support.disturbed([{"others": 0.2}, {"others": 0.4}, {"others": 0.0}]))

    def test_only_what_is_not_our_own_counts(self):
        others = bench_support.Others()
        others.begin = (0.0, 0.0, 0.0)
        for now, share in (((10.0, 8.0, 3.0), 0.5), ((10.0, 2.0, 3.0), 0.0)):
            others.now = lambda now=now: now
            self.assertAlmostEqual(others.share(), share)


class Tables(unittest.TestCase):
    def test_numbers_stand_right_and_words_left(self):
        text = bench_support.table(["name", "n"], [["a", "1.5"], ["long", "12.5"]], False)
        self.assertEqual(text.splitlines(), ["name     n", "a      1.5", "long  12.5"])
        self.assertEqual(bench_support.table(["name"], [], True), "(no runs)")
        self.assertIsNone(bench_support.median([None]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--out", required=True)
    options, rest = parser.parse_known_args()
    BUILD, OUT = pathlib.Path(options.build_dir).resolve(), pathlib.Path(options.out)
    OUT.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *rest])
