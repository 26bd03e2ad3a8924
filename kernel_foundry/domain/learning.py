"""Names of the parts of the generator that learn; each can be switched off to see what it does."""

from typing import Final

EXPERIENCE: Final = "experience"
"""Lessons of earlier candidates in prompts, and new ones from this run."""

META_PROMPTS: Final = "meta_prompts"
"""Guidance in prompts that evolves."""

MODEL_WEIGHTS: Final = "model_weights"
"""Which of several models is asked, by what each gained per dollar."""

LEARNING: Final = (EXPERIENCE, META_PROMPTS, MODEL_WEIGHTS)
