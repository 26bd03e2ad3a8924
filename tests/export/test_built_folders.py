"""Folders as their users build them: CMake, another project's CMake, and pip; no GPU is needed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.export_matrix.folder_run import built, installed, write_folder
from kernel_foundry.sdk.export.targets import TARGETS
from tests.export.unjudged import unjudged_winner

pytestmark = pytest.mark.slow

NAME = "fast_blend"
CONSUMER = """\
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C CXX)
add_subdirectory(fast_blend)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE fast_blend)
"""
PROGRAM = """\
#include <fast_blend.h>
#include <stdio.h>

int main(void) {
  fast_blend_kernels* kernels;
  fast_blend_call call = {0};
  if (fast_blend_open(0, &kernels)) return puts(fast_blend_error()), 1;
  call.rows = 5;
  call.cols = 80;
  if (fast_blend_launch(kernels, &call, 0)) puts(fast_blend_error());
  fast_blend_close(kernels);
  return 0;
}
"""
CALLS = """
import ctypes, json, sys
sys.path.insert(0, sys.argv[1])
import fast_blend

class Array:
    def __init__(self, *shape):
        count = 1
        for size in shape:
            count *= size
        self.space = (ctypes.c_float * (count + 64))()
        address = -(-ctypes.addressof(self.space) // 256) * 256
        self.values = (ctypes.c_float * count).from_address(address)
        self.values[:] = [float(i) for i in range(count)]
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": "<f4", "data": (address, False), "version": 3}

driver, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
kernels = fast_blend.Kernels(0)
driver.cuStreamCreate(ctypes.byref(stream), 1)
weights = {"linear_weight": Array(2, 80), "linear_bias": Array(2)}
x, out = Array(5, 80), Array(5, 80)
assert fast_blend.has_prepare
kernels.prepare(**weights, rows=5, stream=stream.value)
kernels.launch(x=x, out=out, **weights, stream=stream.value)
driver.cuStreamSynchronize(stream)
said = [list(out.values) == [6.0 * i if i < 80 else 0.25 * i for i in range(400)]]
for given in ({"x": Array(5, 81)}, {"x": Array(9, 80), "out": Array(9, 80)}):
    try:
        kernels.launch(**{"x": x, "out": out, **weights, **given}, stream=stream.value)
    except (ValueError, RuntimeError) as error:
        said.append(f"{type(error).__name__}: {error}")
print(json.dumps(said))
"""


@pytest.fixture
def driver(fake_driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder; programs find a driver without a GPU, and are built without optimisation."""
    where = tmp_path / "driver"
    where.mkdir()
    (where / "libcuda.so.1").symlink_to(fake_driver)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(where))
    monkeypatch.setenv("CXXFLAGS", "-O0")
    monkeypatch.setenv("SKBUILD_CMAKE_BUILD_TYPE", "Debug")
    return tmp_path


def written(target: str, folder: Path) -> Path:
    make = TARGETS[target].folder
    assert make is not None
    write_folder(make("", [unjudged_winner()], module=NAME, problem=""), folder / NAME)
    return folder / NAME


def test_cmake_builds_the_library_and_ctest_runs_its_program(driver: Path) -> None:
    assert built("cpp", written("cpp", driver), NAME) == ""


def test_another_project_adds_the_library(driver: Path) -> None:
    written("cpp", driver)
    files = {"CMakeLists.txt": CONSUMER, "consumer.c": PROGRAM}
    write_folder(files, driver)
    for command in (["cmake", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=driver, check=True, stdout=subprocess.DEVNULL)
    ended = subprocess.run([driver / "build" / "consumer"], check=True, capture_output=True)
    assert ended.stdout == b"the weights were not prepared for these sizes\n"
    assert not list(driver.rglob("test_fast_blend"))  # its own test is no part of the other's


def test_pip_installs_the_binding(driver: Path) -> None:
    folder = written("pybind", driver)
    assert built("pybind", folder, NAME) == ""
    command = [sys.executable, "-c", CALLS, str(installed(folder))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    right, another_shape, unjudged = json.loads(ended.stdout)
    assert right is True
    assert another_shape.startswith("ValueError: ")
    assert unjudged == "RuntimeError: rows = 9 was not judged, only 3 to 8"
