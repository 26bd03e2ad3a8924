"""An exported module inside a package of AOTInductor, which has weights of its own."""

from pathlib import Path

import pytest
import torch

from tests.export.conftest import imported

pytestmark = [pytest.mark.sycl, pytest.mark.slow]

QUICK = {
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "aot_inductor.precompile_headers": False,  # takes longer than it saves of one build
    "cpp.simdlen": 1,
}


# Both are of torch's own modules, which use what torch is going to drop.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_the_kernels_run_in_a_package(text: str, tmp_path: Path) -> None:
    # A package finds the operator by its name, which is that of whoever imported the file last.
    assert "\nDIGEST = '" in text
    fast = imported(text.replace("\nDIGEST = '", "\nDIGEST = 'p"), tmp_path, "packaged")
    model = fast.Module(48, 40, 2.0)
    rows = torch.export.Dim("rows", min=2, max=1024)
    with torch.no_grad():
        program = torch.export.export(model, (torch.randn(8, 48),), dynamic_shapes={"x": {0: rows}})
        path = torch._inductor.aoti_compile_and_package(
            program, package_path=str(tmp_path / "fast.pt2"), inductor_configs=QUICK
        )
    package = torch._inductor.aoti_load_package(path)

    def check(count: int) -> None:
        x = torch.randn(count, 48)
        torch.testing.assert_close(package(x), model.linear(x) * 2.0, rtol=1e-5, atol=1e-5)

    with torch.no_grad():
        check(8)
        stats = fast.stats()  # a package puts its copies of weights where it likes
        assert stats["kernel"] or "does not begin" in stats["last_reason"], stats
        package.load_constants(dict(model.state_dict()), check_full_update=True, user_managed=True)
        fast.reset_stats()
        check(9)
        model.linear.weight.mul_(3.0)
        check(9)
        assert (fast.stats()["kernel"], fast.stats()["reference"]) == (2, 0)
        check(80)
        assert "rows = 80 was not judged" in fast.stats()["last_reason"]
