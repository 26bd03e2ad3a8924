"""Arguments that several tools and prompts take, with what their schemas say of them."""

from typing import Annotated, Literal

from pydantic import Field

from kernel_foundry.domain.candidate import LONGEST_CANDIDATE

TaskFile = Annotated[str, Field(description="Task file, relative to the server's root.")]
CandidateText = Annotated[
    str,
    Field(
        max_length=LONGEST_CANDIDATE,
        description="Markdown with a device-code block and a plan block.",
    ),
]
DeviceName = Annotated[
    str,
    Field(
        max_length=200,
        pattern=r"^((sycl|cuda|null)(:\d+(@.+)?|:[a-z0-9-]+-[0-9a-f]{8})?)?$",
        description="An id or a class as `devices` shows them, or a kind such as cuda; empty: any"
        " that runs the language.",
    ),
]
LanguageName = Literal["sycl", "cuda"]
RunName = Annotated[str, Field(max_length=200, description="Name of a run; empty: the newest.")]
