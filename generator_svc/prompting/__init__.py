"""Prompts: what a request, its task and its history become for a model to read.

`writer` is the way in; the templates are the files of `generator_svc/prompts`.
"""
