"""Settings come from the environment, and a wrong value names its variable."""

import os
from pathlib import Path

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.errors import InvalidArgumentError


def test_each_sort_of_value_is_read():
    """Numbers, flags, lists and paths."""
    settings = EvaluatorSettings.from_environment(
        {
            "KERNEL_FOUNDRY_THREADS": "3",
            "KERNEL_FOUNDRY_UNSAFE_NO_SANDBOX": "yes",
            "KERNEL_FOUNDRY_DEVICE_KINDS": "null, sycl",
            "KERNEL_FOUNDRY_CACHE_DIR": "/var/cache/kf",
            "KERNEL_FOUNDRY_WARM_SECONDS": "0.5",
            "UNRELATED": "1",
        }
    )
    assert settings.thread_count == 3
    assert settings.unsafe_no_sandbox
    assert settings.device_kinds == ("null", "sycl")
    assert settings.cache_dir == Path("/var/cache/kf")
    assert settings.warm_seconds == 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("KERNEL_FOUNDRY_THREADS", "two"), ("KERNEL_FOUNDRY_USE_BUBBLEWRAP", "maybe")],
)
def test_a_wrong_value_names_its_variable(name, value):
    """The message says which variable to mend."""
    with pytest.raises(InvalidArgumentError, match=name):
        EvaluatorSettings.from_environment({name: value})


def test_an_unknown_baseline_is_refused_with_those_there_are():
    """Else it would silently be left out."""
    with pytest.raises(InvalidArgumentError, match="beside eager there are"):
        EvaluatorSettings(baselines=("compile",))


async def test_the_cache_that_timings_empty_can_be_smaller_than_the_processors(local_evaluator):
    """As the session's environment says; a few cores have no half a gigabyte to themselves."""
    (device,) = (await local_evaluator("null").capabilities()).devices
    assert device.flush_bytes == 2 * int(os.environ["KERNEL_FOUNDRY_HOST_CACHE_BYTES"])


def test_a_device_kind_that_there_is_not_is_refused():
    with pytest.raises(InvalidArgumentError, match="'gpu': expected sycl, null, cuda"):
        LocalEvaluator(EvaluatorSettings(device_kinds=("null", "gpu")))
