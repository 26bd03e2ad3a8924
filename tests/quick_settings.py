"""Settings of evaluators under test: those of the session's environment, with changes."""

import dataclasses
import os
from typing import Any

from evaluator_svc.settings import EvaluatorSettings


def quick_settings(**changes: Any) -> EvaluatorSettings:
    """Return settings with the session's caches and key, one baseline, and a small cache to empty.

    Args:
        changes: Fields that a test needs otherwise.
    """
    settings = EvaluatorSettings.from_environment(os.environ)
    return dataclasses.replace(settings, **changes)
