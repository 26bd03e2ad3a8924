"""Language models behind one small interface (`interface.LanguageModels`).

Only `sdk` and `recipes_provider` import LiteLLM, and nothing imports those two before the
first call: the import takes seconds.
"""
