"""Copies in place of kernels: what they take, and from where."""

from evaluator_svc.runner.copies_for_kernels import Copy, copies_for_kernels
from kernel_foundry.plan.sequence import (
    BufferArgument,
    BufferSpec,
    Clear,
    Launch,
    LaunchSequence,
    LibraryCall,
    TensorOperand,
)

SIZE = 64


def buffer(kind: str, name: str, *, dtype: str = "float32", size_bytes: int = SIZE) -> BufferSpec:
    """Return a buffer; all have one shape unless told otherwise."""
    return BufferSpec(
        kind=kind, name=name, dtype=dtype, shape=(size_bytes // 4,), size_bytes=size_bytes
    )


def launch(*buffers: int) -> Launch:
    """Return a launch that is given these buffers."""
    return Launch(
        kernel="kernel", grid=(1, 1, 1), block=(1, 1, 1), dimensions=1, shared_bytes=0,
        cooperative=False, arguments=tuple(BufferArgument(index=i) for i in buffers), line=1,
    )  # fmt: skip


def call(operand: int, output: int) -> LibraryCall:
    shape = (SIZE // 4,)
    operands = (TensorOperand(index=operand, shape=shape),)
    return LibraryCall(op="mm", arguments=operands, keywords=(), output=output, line=1)


def copies(buffers, *steps, choice: int = 0, outputs=("out",)):
    sequence = LaunchSequence(buffers=tuple(buffers), steps=steps)
    return copies_for_kernels(sequence, outputs, choice=choice)


X, SCRATCH, RESULT, OUT = range(4)
FOUR = (
    buffer("tensor", "x"),
    buffer("scratch", "scratch0"),
    buffer("result", "result0"),
    buffer("tensor", "out"),
)


def test_operands_and_results_are_copied_in_the_order_of_the_plan() -> None:
    """The call stays, between them."""
    steps = (launch(X, SCRATCH), call(SCRATCH, RESULT), launch(RESULT, OUT))
    found = copies(FOUR, *steps)
    assert found.steps == (
        Copy(from_=X, to=SCRATCH, size_bytes=SIZE),
        steps[1],
        Copy(from_=RESULT, to=OUT, size_bytes=SIZE),
    )
    assert found.choice_count == 1


def test_an_output_is_not_taken_from_an_input() -> None:
    """That would be no decoy of a library, but a copy of the input: which no reference is."""
    assert copies(FOUR, call(X, RESULT), launch(X, OUT)).steps == (call(X, RESULT),)


def test_what_is_there_is_not_replaced() -> None:
    """A kernel that works in place has nothing to fill."""
    found = copies(FOUR, call(X, RESULT), launch(RESULT), launch(X, RESULT))
    assert found.steps == (call(X, RESULT),)


def test_what_a_call_has_filled_may_be_replaced_by_another_result() -> None:
    """Not at first: a kernel may just as well have left it alone."""
    buffers = (*FOUR, buffer("result", "result1"))
    steps = (call(X, OUT), call(X, RESULT), launch(RESULT, OUT))
    assert copies(buffers, *steps).steps == steps[:2]
    assert copies(buffers, *steps, choice=1).steps[-1] == Copy(
        from_=RESULT, to=OUT, size_bytes=SIZE
    )


def test_every_choice_has_its_turn_the_latest_first() -> None:
    """Two results of one shape: which of them the kernel copies nobody tells."""
    buffers = (*FOUR, buffer("result", "result1"))
    steps = (call(X, RESULT), call(X, 4), launch(X, RESULT, 4, OUT))
    taken = [copies(buffers, *steps, choice=choice).steps[2] for choice in range(3)]
    assert [copy.from_ for copy in taken] == [4, RESULT, RESULT]
    assert copies(buffers, *steps).choice_count == 2


def test_other_types_and_sizes_are_left_unfilled() -> None:
    """A kernel that converts or pads does work."""
    half = buffer("result", "result0", dtype="float16")
    wide = buffer("result", "result0", size_bytes=2 * SIZE)
    for other in (half, wide):
        buffers = (*FOUR[:2], other, FOUR[3])
        assert copies(buffers, call(X, RESULT), launch(RESULT, OUT)).steps == (call(X, RESULT),)


def test_clears_stay_and_what_they_clear_may_be_filled() -> None:
    """A copy through cleared scratch is one, too."""
    clear = Clear(buffer=SCRATCH, size_bytes=SIZE)
    found = copies(FOUR, clear, call(X, RESULT), launch(RESULT, SCRATCH), launch(SCRATCH, OUT))
    assert found.steps == (
        clear,
        call(X, RESULT),
        Copy(from_=RESULT, to=SCRATCH, size_bytes=SIZE),
        Copy(from_=SCRATCH, to=OUT, size_bytes=SIZE),
    )
