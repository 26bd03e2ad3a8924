"""The generator service: makes proposals with language models or with built-in recipes.

What is known of a parent comes with the request.
"""
