"""The parts of an exported file, which `torch_file.py` writes one after the other (`_PARTS`).

They stand alone: an exported file needs torch and a driver, nothing of this package. `task.py`
holds what is different in each file.
"""
