"""The evaluator: judges candidates in processes that share nothing but buffers."""
