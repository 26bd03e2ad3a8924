"""A `solution.json` of FlashInfer Trace or SOL-ExecBench, called as both do.

kfoundry export softmax --to flashinfer --problem softmax_d4096     # or --to sol
python use_solution.py
"""

import importlib
import json
import sys
from pathlib import Path

import torch

solution = json.loads(Path("solution.json").read_text())
for source in solution["sources"]:
    Path(source["path"]).write_text(source["content"])
file, _, function = solution["spec"]["entry_point"].partition("::")
sys.path.insert(0, ".")
run = getattr(importlib.import_module(Path(file).stem), function)

device = "cuda" if torch.cuda.is_available() else "cpu"
x, out = torch.randn(64, 4096, device=device), torch.empty(64, 4096, device=device)
run(x, out)  # inputs, then weights, then outputs, which it writes
torch.testing.assert_close(out, torch.softmax(x, dim=-1))
print(solution["name"], "solves", solution["definition"])
