"""The stages of an evaluation, from parse and policy to behaviour and diagnosis.

Each stage is a function with typed input and output; the first that fails ends the evaluation.
"""
