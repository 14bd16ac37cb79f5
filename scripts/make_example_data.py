#!/usr/bin/env python3
"""Writes the tables that configs/regression.json and configs/mixed_precision.json learn from: configs/data/*.csv.

    python3 scripts/make_example_data.py [FOLDER]

Nothing but Python's standard library; the same files every time. A test runs it again and compares.

friedman.csv     1,000 rows of Friedman's first function ("Multivariate adaptive regression splines", The Annals of
                 Statistics 19, 1991, section 4.3): y = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 + N(0, 1), with
                 x1 ... x5 uniform in [0, 1] and x6 ... x10 like them, but without a say in y. To be a table as one meets
                 them, the columns have units: x1 is in thousandths, x4 runs from 300 to 310.
four_rows.csv    4 rows of 512 features N(0, 1), and the targets 1.9, 9.5, 0.9 and 1.2.
"""

import math
import pathlib
import random
import sys


def friedman(path, rows=1000):
    source = random.Random(1991)
    lines = ["x1,x2,x3,x4,x5,x6,x7,x8,x9,x10,y"]
    for _ in range(rows):
        x = [source.random() for _ in range(10)]
        y = 10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4] + source.gauss(0, 1)
        x[0] *= 1000
        x[3] = 300 + 10 * x[3]
        lines.append(",".join(f"{value:.4f}" for value in [*x, y]))
    path.write_text("\n".join(lines) + "\n")


def four_rows(path, features=512):
    source = random.Random(512)
    lines = [",".join([f"x{i}" for i in range(1, features + 1)] + ["y"])]
    for y in ["1.9", "9.5", "0.9", "1.2"]:
        lines.append(",".join([f"{source.gauss(0, 1):.4f}" for _ in range(features)] + [y]))
    path.write_text("\n".join(lines) + "\n")


def main():
    default = pathlib.Path(__file__).resolve().parents[1] / "configs" / "data"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    friedman(folder / "friedman.csv")
    four_rows(folder / "four_rows.csv")


if __name__ == "__main__":
    main()
