"""Whole networks, at the batch of ten images that benchmarks time them with."""

from benchmarks.suite.table import SuiteTask

_IMAGES = {"batch": (10, 2), "size": (224, 32)}
_IMAGE = "torch.rand(batch, 3, size, size)"

_DENSE = """
class Dense(nn.Module):
    \"\"\"Layers that each see the results of all before them.\"\"\"

    def __init__(self, count, channels, growth):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(channels + i * growth),
                nn.ReLU(),
                nn.Conv2d(channels + i * growth, 4 * growth, 1, bias=False),
                nn.BatchNorm2d(4 * growth),
                nn.ReLU(),
                nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
            )
            for i in range(count)
        )

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat((x, layer(x)), dim=1)
        return x
"""

_INVERTED = """
class Inverted(nn.Module):
    \"\"\"Widen, filter each channel, weigh the channels where asked, narrow again.\"\"\"

    def __init__(self, inputs, outputs, kernel, stride, widening, act, squeeze):
        super().__init__()
        hidden = inputs * widening
        layers = []
        if widening > 1:
            layers += [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act()]
        layers += [
            nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            act(),
        ]
        self.expand = nn.Sequential(*layers)
        self.gate = None
        if squeeze:
            self.gate = nn.Sequential(
                nn.AdaptiveAvgPool2d(1),
                nn.Conv2d(hidden, squeeze, 1),
                act(),
                nn.Conv2d(squeeze, hidden, 1),
                nn.Sigmoid(),
            )
        self.project = nn.Sequential(
            nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        )
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.expand(x)
        if self.gate is not None:
            y = y * self.gate(y)
        y = self.project(y)
        return x + y if self.is_residual else y


def inverted(rows, channels, act, squeezes):
    layers = []
    for widening, outputs, count, stride, kernel in rows:
        for i in range(count):
            squeeze = max(channels // 4, 1) if squeezes else 0
            step = stride if i == 0 else 1
            layers.append(Inverted(channels, outputs, kernel, step, widening, act, squeeze))
            channels = outputs
    return nn.Sequential(*layers)
"""

_RESIDUAL = """
class Residual(nn.Module):
    \"\"\"Two or three convolutions beside a short cut.\"\"\"

    def __init__(self, inputs, width, outputs, stride):
        super().__init__()
        if outputs == width:
            shapes = [(inputs, width, 3, stride), (width, outputs, 3, 1)]
        else:
            shapes = [(inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1)]
        layers = []
        for a, b, kernel, step in shapes:
            conv = nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False)
            layers += [conv, nn.BatchNorm2d(b), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])
        self.short = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.short = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        return torch.relu(self.layers(x) + self.short(x))


def residual(counts, widening):
    layers, inputs = [], 64
    for stage, count in enumerate(counts):
        width = 64 << stage
        for i in range(count):
            stride = 2 if stage and i == 0 else 1
            layers.append(Residual(inputs, width, width * widening, stride))
            inputs = width * widening
    return nn.Sequential(*layers)
"""


def _network(name: str, init: str, helpers: str) -> SuiteTask:
    return SuiteTask(
        name=name,
        title=f"{name}.",
        sizes=_IMAGES,
        inputs=_IMAGE,
        helpers=helpers,
        init=init,
        forward="return self.head(self.features(x).mean(dim=(2, 3)))",
    )


def _stem(channels: int, act: str, kernel: int = 3) -> str:
    return (
        f"nn.Conv2d(3, {channels}, {kernel}, 2, {kernel // 2}, bias=False), "
        f"nn.BatchNorm2d({channels}), {act}"
    )


TASKS = (
    _network(
        "densenet_121",
        f"""
            layers = [{_stem(64, "nn.ReLU()", 7)}, nn.MaxPool2d(3, 2, 1)]
            channels = 64
            for stage, count in enumerate((6, 12, 24, 16)):
                layers.append(Dense(count, channels, 32))
                channels += 32 * count
                layers += [nn.BatchNorm2d(channels), nn.ReLU()]
                if stage < 3:
                    layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
                    channels //= 2
            self.features = nn.Sequential(*layers)
            self.head = nn.Linear(channels, 10)
        """,
        _DENSE,
    ),
    _network(
        "mobilenet_v2",
        f"""
            rows = (
                (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
                (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3),
            )
            self.features = nn.Sequential(
                {_stem(32, "nn.ReLU6()")},
                inverted(rows, 32, nn.ReLU6, False),
                nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(),
            )
            self.head = nn.Linear(1280, 1000)
        """,
        _INVERTED,
    ),
    _network(
        "efficientnet_b0",
        f"""
            rows = (
                (1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
                (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3),
            )
            self.features = nn.Sequential(
                {_stem(32, "nn.SiLU()")},
                inverted(rows, 32, nn.SiLU, True),
                nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.SiLU(),
            )
            self.head = nn.Linear(1280, 1000)
        """,
        _INVERTED,
    ),
    _network(
        "resnet_18",
        f"""
            self.features = nn.Sequential(
                {_stem(64, "nn.ReLU()", 7)}, nn.MaxPool2d(3, 2, 1), residual((2, 2, 2, 2), 1)
            )
            self.head = nn.Linear(512, 1000)
        """,
        _RESIDUAL,
    ),
    _network(
        "resnet_101",
        f"""
            self.features = nn.Sequential(
                {_stem(64, "nn.ReLU()", 7)}, nn.MaxPool2d(3, 2, 1), residual((3, 4, 23, 3), 4)
            )
            self.head = nn.Linear(2048, 1000)
        """,
        _RESIDUAL,
    ),
    SuiteTask(
        name="vgg_16",
        title="vgg_16.",
        sizes=_IMAGES,
        inputs=_IMAGE,
        init="""
            layers, channels = [], 3
            for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
                for _ in range(count):
                    layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
                    channels = width
                layers.append(nn.MaxPool2d(2))
            self.features = nn.Sequential(*layers)
            self.head = nn.Sequential(
                nn.Linear(512 * (size // 32) ** 2, 4096), nn.ReLU(),
                nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000),
            )
        """,
        forward="return self.head(self.features(x).flatten(1))",
    ),
    SuiteTask(
        name="deep_mlp",
        title="A perceptron of eight wide layers.",
        sizes={"batch": (1024, 8), "width": (8192, 48)},
        inputs="torch.rand(batch, width)",
        init="""
            layers = []
            for _ in range(8):
                layers += [nn.Linear(width, width), nn.ReLU()]
            self.layers = nn.Sequential(*layers)
        """,
        forward="return self.layers(x)",
    ),
    SuiteTask(
        name="squeeze_and_fire",
        title="A squeeze layer and two that expand it.",
        sizes={"batch": (128, 2), "size": (256, 8)},
        inputs="torch.rand(batch, 3, size, size)",
        init="""
            self.squeeze = nn.Conv2d(3, 6, 1)
            self.narrow = nn.Conv2d(6, 64, 1)
            self.wide = nn.Conv2d(6, 64, 3, padding=1)
        """,
        forward="""
            y = torch.relu(self.squeeze(x))
            return torch.cat((torch.relu(self.narrow(y)), torch.relu(self.wide(y))), dim=1)
        """,
    ),
)
