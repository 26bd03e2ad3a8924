"""Meta-prompts: guidance in prompts that evolves by what it was worth.

`sections` is what evolves, `population` chooses and credits, `editor` makes a new one with a model.
"""
