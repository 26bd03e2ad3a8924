"""Chains of several operators that a fused kernel does at once; two of them are degenerate."""

from benchmarks.suite.table import SuiteTask


def _linear(
    name: str, layers: str, forward: str, width: int = 8192, *, is_degenerate: bool = False
) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name.replace('_', ' ')}.",
        sizes={"batch": (1024, 8), "width": (width, 64)},
        inputs="torch.rand(batch, width)",
        init=f"self.linear = nn.Linear(width, width)\n{layers}",
        forward=forward,
        is_degenerate=is_degenerate,
    )


def _images(
    name: str, layers: str, forward: str, rank: int = 2, **sizes: tuple[int, int]
) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name.replace('_', ' ')}.",
        sizes=sizes,
        inputs=f"torch.rand(batch, channels, {', '.join(['size'] * rank)})",
        init=layers,
        forward=forward,
    )


TASKS = (
    _linear(
        "linear_divide_gelu", "self.divisor = 10.0", "return F.gelu(self.linear(x) / self.divisor)"
    ),
    _linear(
        "linear_group_norm_hardtanh",
        "self.norm = nn.GroupNorm(16, width)",
        "return F.hardtanh(self.norm(self.linear(x)), -2.0, 2.0)",
    ),
    _linear(
        "linear_batch_norm_swish",
        "self.norm = nn.BatchNorm1d(width)\nself.bias = nn.Parameter(torch.randn(1))",
        """
        y = (self.norm(self.linear(x)) + self.bias) / 2.0
        return y * torch.sigmoid(y)
        """,
    ),
    _linear(
        "linear_max_pool_sum",
        "self.pool = nn.MaxPool1d(2)",
        "return self.pool(self.linear(x).unsqueeze(1)).squeeze(1).sum(dim=1) * 0.5",
    ),
    _images(
        "conv_relu_bias",
        "self.conv = nn.Conv2d(channels, 128, 3)\nself.bias = nn.Parameter(torch.randn(128, 1, 1))",
        "return torch.relu(self.conv(x)) + self.bias",
        batch=(128, 2), channels=(64, 4), size=(128, 8),
    ),
    _images(
        "conv_group_norm_tanh_logsumexp",
        "self.conv = nn.Conv2d(channels, 64, 3)\nself.norm = nn.GroupNorm(16, 64)",
        """
        y = self.conv(x)
        z = F.hardswish(torch.tanh(self.norm(y)))
        return torch.logsumexp(y + z, dim=1, keepdim=True)
        """,
        batch=(128, 2), channels=(8, 4), size=(128, 10),
    ),
    _images(
        "conv_instance_norm_divide",
        "self.conv = nn.Conv2d(channels, 128, 3)\nself.norm = nn.InstanceNorm2d(128)",
        "return self.norm(self.conv(x)) / 2.0",
        batch=(128, 2), channels=(64, 4), size=(128, 8),
    ),
    _images(
        "conv_3d_multiply_clamp_max",
        """
        self.conv = nn.Conv3d(channels, 16, 3)
        self.scale = nn.Parameter(torch.randn(16, 1, 1, 1))
        self.norm = nn.InstanceNorm3d(16)
        """,
        """
        y = self.norm(self.conv(x) * self.scale).clamp(-1.0, 1.0)
        return torch.max(y * self.scale, dim=1)[0]
        """,
        rank=3, batch=(128, 2), channels=(3, 3), size=(32, 6),
    ),
    _images(
        "conv_transposed_3d_norm_pool",
        """
        self.conv = nn.ConvTranspose3d(channels, 64, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm3d(64)
        self.pool = nn.AvgPool3d(2)
        """,
        "return self.pool(self.norm(self.conv(x)))",
        rank=3, batch=(32, 2), channels=(3, 2), size=(32, 5),
    ),
    _images(
        "conv_transposed_bias_softmax",
        """
        self.conv = nn.ConvTranspose2d(channels, 128, 4, stride=2, padding=1, output_padding=1)
        self.bias = nn.Parameter(torch.randn(128, 1, 1))
        """,
        "return torch.sigmoid((torch.softmax(self.conv(x), dim=1) + self.bias) * 2.0)",
        batch=(128, 2), channels=(64, 4), size=(64, 5),
    ),
    _images(
        "residual_block",
        """
        self.first = nn.Conv2d(channels, 64, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(64)
        self.second = nn.Conv2d(64, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        """,
        "y = torch.relu(self.first_norm(self.first(x)))\n"
        "return torch.relu(self.second_norm(self.second(y)) + x)",
        batch=(32, 2), channels=(64, 4), size=(112, 6),
    ),
    _linear(
        "linear_max_minus_mean",
        "",
        "y = self.linear(x).amax(dim=1, keepdim=True)\n"
        "return F.gelu(y - y.mean(dim=1, keepdim=True))",
        is_degenerate=True,
    ),
    _linear(
        "linear_sum_softmax",
        "",
        "return torch.softmax(self.linear(x).sum(dim=1, keepdim=True), dim=1)",
        is_degenerate=True,
    ),
)  # fmt: skip
