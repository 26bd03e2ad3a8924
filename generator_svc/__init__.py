"""The generator service: makes proposals with language models or with built-in recipes.

Knows nothing of scores or of hardware: what is known of a parent comes with the request.
"""
