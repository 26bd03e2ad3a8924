"""Normalisations of up to 1.9 G elements."""

from benchmarks.suite.table import SuiteTask

_IMAGES = {"batch": (112, 2), "channels": (64, 8), "size": (512, 12)}
_IMAGE = "torch.randn(batch, channels, size, size)"

TASKS = (
    SuiteTask(
        name="batch_norm",
        title="Batch normalisation in training mode.",
        sizes=_IMAGES | {"batch": (64, 2)},
        inputs=_IMAGE,
        init="self.norm = nn.BatchNorm2d(channels)",
        forward="return self.norm(x)",
    ),
    SuiteTask(
        name="instance_norm",
        title="Instance normalisation of 1.88 G elements.",
        sizes=_IMAGES,
        inputs=_IMAGE,
        init="self.norm = nn.InstanceNorm2d(channels)",
        forward="return self.norm(x)",
    ),
    SuiteTask(
        name="group_norm",
        title="Group normalisation of 1.88 G elements.",
        sizes=_IMAGES,
        inputs=_IMAGE,
        init="self.norm = nn.GroupNorm(8, channels)",
        forward="return self.norm(x)",
    ),
    SuiteTask(
        name="rms_norm",
        title="RMS normalisation over channels of 1.88 G elements.",
        sizes=_IMAGES,
        inputs=_IMAGE,
        forward="return x / torch.sqrt(x.pow(2).mean(dim=1, keepdim=True) + 1e-5)",
    ),
    SuiteTask(
        name="layer_norm",
        title="Layer normalisation over the last three axes.",
        sizes={"batch": (16, 3), "channels": (64, 4), "size": (256, 6)},
        inputs=_IMAGE,
        init="self.norm = nn.LayerNorm((channels, size, size))",
        forward="return self.norm(x)",
    ),
    SuiteTask(
        name="frobenius_norm",
        title="A tensor over its Frobenius norm.",
        sizes=_IMAGES,
        inputs=_IMAGE,
        forward="return x / torch.linalg.vector_norm(x)",
    ),
    SuiteTask(
        name="l2_norm",
        title="Rows over their L2 norm.",
        sizes={"rows": (32768, 6), "dim": (65535, 70)},
        inputs="torch.randn(rows, dim)",
        forward="return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)",
    ),
)
