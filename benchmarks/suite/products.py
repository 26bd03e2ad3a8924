"""Matrix products of all shapes and layouts."""

from benchmarks.suite.table import SuiteTask


def _product(
    name: str,
    expression: str,
    inputs: str,
    arguments: str = "a, b",
    **sizes: tuple[int, int],
) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"Matrix product: {name}.",
        sizes=sizes,
        inputs=inputs,
        arguments=arguments,
        forward=f"return {expression}",
    )


TASKS = (
    _product("square", "a @ b", "torch.rand(n, n), torch.rand(n, n)", n=(4096, 24)),
    _product(
        "rectangular", "a @ b", "torch.rand(m, k), torch.rand(k, n)",
        m=(2048, 16), k=(8192, 24), n=(4096, 20),
    ),
    _product(
        "batched", "torch.bmm(a, b)", "torch.rand(batch, m, k), torch.rand(batch, k, n)",
        batch=(128, 2), m=(512, 8), k=(1024, 12), n=(2048, 10),
    ),
    _product(
        "matrix_vector", "a @ b", "torch.rand(m, k), torch.rand(k, 1)",
        m=(2048, 18), k=(1048576, 64),
    ),
    _product(
        "scaled_matrix", "a * b", "torch.rand(m, n), 3.14", m=(65536, 16), n=(16384, 20),
    ),
    _product(
        "long_inner", "a @ b", "torch.rand(m, k), torch.rand(k, m)", m=(256, 12), k=(524288, 96),
    ),
    _product(
        "short_inner", "a @ b", "torch.rand(m, k), torch.rand(k, m)", m=(32768, 24), k=(64, 4),
    ),
    _product(
        "irregular", "a @ b", "torch.rand(m, k), torch.rand(k, n)",
        m=(8205, 17), k=(2949, 13), n=(5921, 19),
    ),
    _product(
        "tall_and_skinny", "a @ b", "torch.rand(m, k), torch.rand(k, m)", m=(32768, 24), k=(32, 3),
    ),
    _product(
        "transposed_left", "a.T @ b", "torch.rand(k, m), torch.rand(k, n)",
        m=(2048, 16), k=(8192, 24), n=(4096, 20),
    ),
    _product(
        "transposed_both", "a.T @ b.T", "torch.rand(k, m), torch.rand(n, k)",
        m=(2048, 16), k=(8192, 24), n=(4096, 20),
    ),
    _product(
        "diagonal", "torch.diag(a) @ b", "torch.rand(n), torch.rand(n, m)",
        n=(4096, 20), m=(4096, 24),
    ),
    _product(
        "upper_triangular", "torch.triu(a @ b)", "torch.rand(n, n).triu(), torch.rand(n, n).triu()",
        n=(4096, 24),
    ),
    _product(
        "symmetric", "a @ b", "(lambda t: t + t.T)(torch.rand(n, n)), torch.rand(n, n)",
        n=(4096, 24),
    ),
    _product(
        "four_axes_with_matrix", "torch.einsum('bijl,lk->bijk', a, b)",
        "torch.rand(batch, i, j, l), torch.rand(l, k)",
        batch=(8, 2), i=(256, 4), j=(512, 5), l=(256, 12), k=(768, 16),
    ),
    _product(
        "square_bfloat16", "a @ b",
        "torch.randn(n, n, dtype=torch.bfloat16), torch.randn(n, n, dtype=torch.bfloat16)",
        n=(8192, 32),
    ),
    _product(
        "square_float16_to_float32", "(a @ b).float()",
        "torch.randn(n, n).half(), torch.randn(n, n).half()", n=(8192, 32),
    ),
    _product(
        "scaled_float8", "((a.to(torch.bfloat16) @ b.to(torch.bfloat16)) * 0.05).to(a.dtype)",
        "torch.randn(n, n).to(torch.float8_e4m3fn), torch.randn(n, n).to(torch.float8_e4m3fn)",
        n=(4096, 32),
    ),
)  # fmt: skip
