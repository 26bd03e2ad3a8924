"""Which devices a self-test tries, and what it says of an evaluator that cannot be probed."""

import asyncio

import pytest

from kernel_foundry.domain.device import Availability, Capabilities, IsolationReport
from kernel_foundry.domain.probe import Probe
from kernel_foundry.errors import BackendUnavailableError, ProcessLostError
from kernel_foundry.sdk.selftest.run import SelfTest, selftest
from kernel_foundry.testing.evaluator import FakeEvaluator


class _Broken(FakeEvaluator):
    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        raise ProcessLostError("the judge is gone")


class _Bare(FakeEvaluator):
    async def capabilities(self) -> Capabilities:
        missing = Availability(kind="cuda", available=False, reason="no driver")
        return Capabilities(
            devices=(), availability=(missing,), isolation=IsolationReport(mechanisms=())
        )


def _selftest(evaluator: FakeEvaluator, device: str = "") -> SelfTest:
    return asyncio.run(selftest(evaluator, device=device, listener=lambda _result: None))


def test_without_cases_the_probes_decide() -> None:
    found = _selftest(FakeEvaluator())
    assert [device.device for device in found.devices] == ["fake:0"]
    assert found.passed
    assert found.cases == ()


def test_probing_that_fails_is_a_probe_that_failed() -> None:
    found = _selftest(_Broken())
    (probe,) = found.devices[0].probes
    assert (probe.passed, probe.name) == (False, "host.probing")
    assert "the judge is gone" in probe.detail
    assert not found.passed


def test_without_a_device_there_is_nothing_to_test() -> None:
    with pytest.raises(BackendUnavailableError, match="cuda: no driver"):
        _selftest(_Bare())
    with pytest.raises(BackendUnavailableError, match="'cuda:7'"):
        _selftest(FakeEvaluator(), device="cuda:7")
