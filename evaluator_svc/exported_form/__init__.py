"""Tries an exported file where it will be used: a process with torch and without this package."""
