"""Reductions, scans, pooling and losses."""

from benchmarks.suite.table import SuiteTask

_CUBE = {"batch": (128, 3), "rows": (4096, 18), "cols": (4095, 17)}
_MATRIX = {"rows": (32768, 6), "dim": (32768, 40)}


def _reduction(name: str, expression: str) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name} of 2.1 G elements.",
        sizes=_CUBE,
        inputs="torch.randn(batch, rows, cols)",
        forward=f"return {expression}",
    )


def _scan(name: str, expression: str, inputs: str = "torch.randn(rows, dim)") -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name} along rows of 32768.",
        sizes=_MATRIX,
        inputs=inputs,
        arguments="x, mask" if "mask" in expression else "x",
        forward=f"return {expression}",
    )


def _pool(name: str, layer: str, shape: str, sizes: dict[str, tuple[int, int]]) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{layer}.",
        sizes=sizes,
        inputs=f"torch.randn({shape})",
        init=f"self.pool = nn.{layer}",
        forward="return self.pool(x)",
    )


def _loss(
    name: str,
    expression: str,
    inputs: str,
    *,
    arguments: str = "a, b",
    rows: int = 32768,
    dim: int = 32768,
) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name}.",
        sizes={"rows": (rows, 16), "dim": (dim, 24)},
        inputs=inputs,
        arguments=arguments,
        forward=f"return {expression}",
    )


TASKS = (
    _reduction("sum_of_columns", "x.sum(dim=1, keepdim=True)"),
    _reduction("maximum", "x.amax(dim=1)"),
    _reduction("argmax", "x.argmax(dim=1)"),
    _reduction("variance", "x.var(dim=2)"),
    _scan("cumulative_sum", "torch.cumsum(x, dim=1)"),
    _scan("cumulative_product", "torch.cumprod(x, dim=1)", "1 + 0.01 * torch.randn(rows, dim)"),
    _scan("reverse_cumulative_sum", "torch.cumsum(x.flip(1), dim=1).flip(1)"),
    _scan(
        "masked_cumulative_sum",
        "torch.cumsum(x * mask, dim=1)",
        "torch.randn(rows, dim), torch.rand(rows, dim) < 0.5",
    ),
    _pool(
        "max_pool_1d",
        "MaxPool1d(8, stride=1, padding=4, dilation=3)",
        "batch, channels, size",
        {"batch": (64, 2), "channels": (192, 3), "size": (65536, 40)},
    ),
    _pool(
        "max_pool_2d",
        "MaxPool2d(4, stride=1, padding=1)",
        "batch, channels, size, size",
        {"batch": (32, 2), "channels": (64, 3), "size": (512, 14)},
    ),
    _pool(
        "average_pool_3d",
        "AvgPool3d(3, stride=2, padding=1)",
        "batch, channels, depth, size, size",
        {"batch": (16, 2), "channels": (32, 2), "depth": (128, 8), "size": (128, 10)},
    ),
    _loss("mse_loss", "F.mse_loss(a, b)", "torch.rand(rows, dim), torch.rand(rows, dim)"),
    _loss(
        "huber_loss", "F.smooth_l1_loss(a, b)", "3 * torch.randn(rows, dim), torch.randn(rows, dim)"
    ),
    _loss(
        "cross_entropy",
        "F.cross_entropy(a, b)",
        "torch.randn(rows, dim), torch.randint(0, dim, (rows,))",
        dim=4096,
    ),
    _loss(
        "kl_divergence",
        "F.kl_div(torch.log(a), b, reduction='batchmean')",
        "torch.rand(rows, dim).softmax(-1), torch.rand(rows, dim).softmax(-1)",
        rows=16384,
        dim=16384,
    ),
    _loss(
        "triplet_loss",
        "F.triplet_margin_loss(a, b, c)",
        "torch.rand(rows, dim), torch.rand(rows, dim), torch.rand(rows, dim)",
        arguments="a, b, c",
        dim=8192,
    ),
    SuiteTask(
        name="hinge_loss_of_labels",
        title="Hinge loss against labels of -1 and 1.",
        sizes=_MATRIX,
        inputs="torch.rand(rows, dim), torch.randint(0, 2, (rows,)).float() * 2 - 1",
        arguments="scores, labels",
        forward="return torch.mean(torch.clamp(1 - scores * labels[:, None], min=0))",
    ),
)
