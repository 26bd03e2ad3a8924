"""Activations at 1.6 G elements."""

from benchmarks.suite.table import SuiteTask

_SIZES = {"batch": (4096, 4), "dim": (393216, 96)}


def _activation(name: str, expression: str, inputs: str = "torch.randn(batch, dim)") -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name} of 1.6 G elements.",
        sizes=_SIZES,
        inputs=inputs,
        forward=f"return {expression}",
    )


TASKS = (
    _activation("relu", "torch.relu(x)"),
    _activation("leaky_relu", "F.leaky_relu(x, negative_slope=0.01)"),
    _activation("sigmoid", "torch.sigmoid(x)"),
    _activation("tanh", "torch.tanh(x)"),
    _activation("swish", "x * torch.sigmoid(x)"),
    _activation("gelu", "F.gelu(x)"),
    _activation("mish", "F.mish(x)"),
    _activation("softplus", "F.softplus(x)"),
    _activation("hardtanh", "F.hardtanh(x, min_val=-1.0, max_val=1.0)"),
    _activation("softmax", "torch.softmax(x, dim=1)"),
    _activation("log_softmax", "torch.log_softmax(x, dim=1)"),
    SuiteTask(
        name="tanh_approximated_gelu",
        title="The tanh form of GELU, written out.",
        sizes={"rows": (8192, 8), "dim": (8192, 64)},
        inputs="torch.randn(rows, dim)",
        forward="""
            inner = 0.7978845608028654 * (x + 0.044715 * x.pow(3))
            return 0.5 * x * (1.0 + torch.tanh(inner))
        """,
    ),
)
