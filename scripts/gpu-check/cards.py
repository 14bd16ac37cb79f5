"""What cards can do, by NVIDIA's data sheets: dense products of bf16 or fp16 with fp32 sums, and memory.

The sheets' figures "with sparsity" are halved. A card that is not in the table has a peak that is not known here.
"""

import re

# (pattern of nvidia-smi's name, TFLOP/s, GB/s, source)
CARDS = [
    (r"\bGB200\b", 2500.0, 8000, "GB200 NVL72 data sheet (a GPU's share)"),
    (r"\bB200\b", 2250.0, 8000, "HGX B200 data sheet"),
    (r"\bH200 NVL\b", 835.5, 4800, "H200 NVL data sheet"),
    (r"\bH200\b", 989.4, 4800, "H200 SXM data sheet"),
    (r"\bGH200\b", 989.4, 4000, "GH200 data sheet (HBM3)"),
    (r"\bH100 NVL\b", 835.5, 3900, "H100 NVL data sheet"),
    (r"\bH100 PCIe\b", 756.4, 2000, "H100 PCIe data sheet"),
    (r"\bH100\b", 989.4, 3350, "H100 SXM data sheet"),
    (r"\bA100\b.*\b80GB\b", 312.0, 2039, "A100 80 GB SXM data sheet"),
    (r"\bA100\b", 312.0, 1555, "A100 40 GB data sheet"),
    (r"\bA800\b", 312.0, 2039, "A800 data sheet"),
    (r"\bL40S\b", 362.0, 864, "L40S data sheet"),
    (r"\bL4\b", 121.0, 300, "L4 data sheet"),
    (r"\bA40\b", 149.7, 696, "A40 data sheet"),
    (r"\bA10\b", 125.0, 600, "A10 data sheet"),
    (r"\bRTX 4090\b", 165.2, 1008, "Ada architecture paper, fp32 sums"),
    (r"\bRTX 5090\b", 209.5, 1792, "Blackwell RTX architecture paper, fp32 sums"),
]


def peak(name):
    """(TFLOP/s, GB/s, source), or None for a card that is not in the table."""
    for pattern, products, memory, source in CARDS:
        if re.search(pattern, name):
            return products, memory, source
    return None
