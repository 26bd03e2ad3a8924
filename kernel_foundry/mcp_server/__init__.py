"""The tools of a coding agent over the Model Context Protocol: `kfoundry mcp`.

Each tool calls what the command line and the SDK call. Answers are digests of bounded size.
"""
