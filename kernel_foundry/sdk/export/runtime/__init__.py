"""The parts of an exported file, in order: `torch_file.py` writes them one after the other.

They stand alone: an exported file needs torch and a driver, nothing of this package. `task.py`
holds what is different in each file.
"""
