"""The stages of an evaluation: parse, policy, build, bind, correctness, timing, behaviour, diagnosis.

Each stage is a function with typed input and output; the first that fails ends the evaluation.
"""
