"""A run is proposed for, renamed and forgotten by the user who began it, or an admin."""

from contextvars import copy_context
from dataclasses import replace
from typing import Any

import pytest

from kernel_foundry.caller import ANYBODY, Caller, caller, set_caller
from kernel_foundry.domain.request import ProposalRequest
from kernel_foundry.errors import PermissionDeniedError


async def test_a_run_of_another_user_is_left_alone(
    request_: ProposalRequest, samples: Any, make_generator: Any
) -> None:
    generator, models = make_generator([samples.REPLY] * 4)
    set_caller(Caller(name="ada"))
    await generator.propose(request_)
    set_caller(Caller(name="bob"))
    for change in (
        lambda: generator.propose(request_),
        lambda: generator.rename_run(request_.run, "mine"),
        lambda: generator.forget_run(request_.run),
    ):
        with pytest.raises(PermissionDeniedError, match="belongs to ada"):
            await change()
    assert len(models.asked) == 1
    set_caller(Caller(name="root", is_admin=True))
    await generator.rename_run(request_.run, "other")
    set_caller(Caller(name="ada"))
    await generator.propose(replace(request_, run="other"))
    await generator.forget_run("other")
    set_caller(Caller(name="bob"))
    await generator.propose(replace(request_, run="other"))
    set_caller(ANYBODY)
    await generator.forget_run("other")


async def test_a_caller_is_known_within_its_own_call_alone() -> None:
    """Contexts of other tasks stay as they are."""
    copy_context().run(set_caller, Caller(name="eve"))
    assert caller() == ANYBODY
