"""Language models behind one small interface (`interface.LanguageModels`).

Only `sdk`, `error_map` and `recipes_provider` import LiteLLM, and nothing imports those before
the first call that needs it, which one of recipes alone does not: the import takes seconds.
"""
