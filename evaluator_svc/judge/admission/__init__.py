"""Admission: examines a task before money is spent on it."""
