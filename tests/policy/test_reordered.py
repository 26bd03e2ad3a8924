"""A module in reverse order is a module still, and says how far it is reversed."""

import struct
from pathlib import Path

import pytest

from evaluator_svc import spirv
from evaluator_svc.messages.item_order import ItemOrder
from evaluator_svc.spirv.opcodes import Op
from evaluator_svc.spirv.reordered import reordered

_FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "behaviour")
_MODULES = sorted(path for folder in _FOLDERS for path in folder.glob("*/*.spv"))


def _named(name: str) -> bytes:
    return next(path for path in _MODULES if path.stem == name).read_bytes()


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.stem)
def test_every_number_is_turned_round(path: Path) -> None:
    code = path.read_bytes()
    made = reordered(code)
    if made is None:
        assert not {26, 27, 28} & set(spirv.parse(code).built_ins.values())
        return
    before, after = spirv.parse(code), spirv.parse(made.code)
    assert after.entry_points == before.entry_points
    results = [i.result_id for i in after.instructions() if i.result_id]
    assert len(results) == len(set(results))
    assert max(results) < struct.unpack_from("<4I", made.code)[3]
    loads = [i for i in after.instructions() if i.opcode == Op.LOAD]
    assert len(loads) > sum(i.opcode == Op.LOAD for i in before.instructions())
    sizes = {24, 25, 31}
    assert {
        after.built_ins[i.operands[0]] for i in loads if i.operands[0] in after.built_ins
    } & sizes


def test_lanes_stay_where_values_are_exchanged() -> None:
    """Sub-groups of such kernels are reversed as wholes."""
    for name, items in (
        ("matmul_local_tile", ItemOrder.REVERSED),
        ("row_per_item", ItemOrder.REVERSED),
        ("row_per_sub_group", ItemOrder.SUB_GROUPS),
        ("row_per_work_group", ItemOrder.SUB_GROUPS),
    ):
        made = reordered(_named(name))
        assert made is not None
        assert made.items is items, name
