"""Convolutions of one to three axes: plain, transposed, depthwise, dilated, strided."""

from benchmarks.suite.table import SuiteTask


def _convolution(name: str, layer: str, shape: str, **sizes: tuple[int, int]) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{layer}.",
        sizes=sizes,
        inputs=f"torch.randn({shape})",
        init=f"self.layer = nn.{layer}",
        forward="return self.layer(x)",
    )


TASKS = (
    _convolution(
        "conv_1d", "Conv1d(64, 128, 3)", "batch, 64, size", batch=(16, 2), size=(524288, 40)
    ),
    _convolution(
        "conv_1d_dilated_strided", "Conv1d(64, 128, 3, stride=3, dilation=4)", "batch, 64, size",
        batch=(64, 2), size=(524280, 40),
    ),
    _convolution(
        "conv_2d_square", "Conv2d(16, 128, 3)", "batch, 16, size, size",
        batch=(16, 2), size=(1024, 12),
    ),
    _convolution(
        "conv_2d_first_of_alexnet", "Conv2d(3, 96, 11, stride=4, padding=2)",
        "batch, 3, size, size", batch=(256, 2), size=(224, 32),
    ),
    _convolution(
        "conv_2d_oblong", "Conv2d(64, 128, (5, 7))", "batch, 64, height, width",
        batch=(8, 2), height=(512, 9), width=(256, 11),
    ),
    _convolution(
        "conv_2d_dilated", "Conv2d(32, 64, (5, 9), padding=(2, 4), dilation=(2, 3))",
        "batch, 32, size, size", batch=(8, 1), size=(512, 28),
    ),
    _convolution(
        "conv_2d_depthwise", "Conv2d(128, 128, 3, groups=128)", "batch, 128, height, width",
        batch=(64, 2), height=(256, 8), width=(512, 9),
    ),
    _convolution(
        "conv_2d_pointwise", "Conv2d(64, 128, 1)", "batch, 64, size, size",
        batch=(16, 2), size=(1024, 9),
    ),
    _convolution(
        "conv_3d", "Conv3d(3, 64, 3)", "batch, 3, depth, size, size",
        batch=(16, 2), depth=(64, 6), size=(64, 7),
    ),
    _convolution(
        "conv_transposed_1d", "ConvTranspose1d(32, 64, 5, stride=2, padding=1, dilation=2)",
        "batch, 32, size", batch=(16, 2), size=(131072, 24),
    ),
    _convolution(
        "conv_transposed_2d", "ConvTranspose2d(64, 64, (3, 7), stride=1, padding=(1, 3))",
        "batch, 64, height, width", batch=(8, 2), height=(512, 8), width=(512, 9),
    ),
    _convolution(
        "conv_transposed_3d", "ConvTranspose3d(32, 32, 3, stride=2, padding=1, groups=4)",
        "batch, 32, depth, size, size", batch=(8, 1), depth=(32, 4), size=(64, 5),
    ),
    SuiteTask(
        name="conv_2d_separable",
        title="A depthwise convolution, then a pointwise one.",
        sizes={"batch": (16, 2), "size": (512, 9)},
        inputs="torch.randn(batch, 64, size, size)",
        init="""
            self.depthwise = nn.Conv2d(64, 64, 3, padding=1, groups=64)
            self.pointwise = nn.Conv2d(64, 128, 1)
        """,
        forward="return self.pointwise(self.depthwise(x))",
    ),
)  # fmt: skip
