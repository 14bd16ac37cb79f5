#!/usr/bin/env python3
"""Writes the files of other programs' formats that zerotrain's tests read: tests/golden/formats/.

Run by hand, in a virtual environment outside the repository that has numpy and safetensors:

    python scripts/golden/make_formats.py

package.safetensors   written by the package: of every format that tests ask for
"""

import pathlib

import numpy as np
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "golden" / "formats"


def write_package_file():
    values = np.array([[0.0, -0.0, 1.5], [-2.25, 65504.0, 1e-3]])
    tensors = {
        "single": values.astype(np.float32),
        "half": values.astype(np.float16),
        "double": values.astype(np.float64),
        "counts": np.arange(-2, 3, dtype=np.int64),
        "scalar": np.array(7.0, dtype=np.float32),
        "empty": np.zeros((0, 4), dtype=np.float32),
        "flags": np.array([True, False, True]),
        "größe/ü \"quoted\"": np.array([1, 2, 255], dtype=np.uint8),
    }
    save_file(tensors, FOLDER / "package.safetensors", metadata={"format": "np", "note": "a \"text\"\n with ü"})


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    write_package_file()
