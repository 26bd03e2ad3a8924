"""Small references for plain kernels: one or two of every family that people optimise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812  torch's own name for it


class Lambda(nn.Module):
    def __init__(self, call: Callable[..., Any], **modules: nn.Module) -> None:
        super().__init__()
        self.call = call
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.call(self, *inputs)


class TwoInputs(Lambda):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.call(self, x, y)


class OneInput(Lambda):
    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self, x)


@dataclass(frozen=True)
class Case:
    """A module, and its inputs for sizes that differ between workloads."""

    model: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]
    sizes: tuple[int, ...] = (2, 3)


def _one(call: Callable[[Any, torch.Tensor], Any], *shape: int, **modules: Any) -> Case:
    """Return a case of one input whose first size varies."""
    return Case(
        lambda: OneInput(call, **{name: make() for name, make in modules.items()}),
        lambda batch: (torch.randn(batch, *shape),),
    )


def _loss(call: Callable[[torch.Tensor, torch.Tensor], Any], **made: Any) -> Case:
    first = made.get("x", lambda n: torch.randn(n, 17))
    second = made.get("y", lambda n: torch.randn(n, 17))
    return Case(
        lambda: TwoInputs(lambda _, x, y: call(x, y)),
        lambda n: (first(n), second(n)),
        sizes=(6, 9),
    )


def _attention(_: Any, x: torch.Tensor) -> torch.Tensor:
    q, k, v = x.split(8, dim=-1)
    scores = q @ k.transpose(-2, -1) / 8**0.5
    mask = torch.tril(torch.ones(5, 5)) == 0
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v


def _sized_attention(_: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    scores = x @ y.transpose(-2, -1) / (x.shape[-1] ** 0.5)
    mask = torch.tril(torch.ones(5, 5)) == 0
    shares = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
    return F.scaled_dot_product_attention(shares @ y, y, x, scale=3 / x.shape[-1])


def _heads(s: Any, x: torch.Tensor) -> torch.Tensor:
    batch, length, width = x.shape
    q, k, v = s.qkv(x).split(width, dim=2)
    q, k, v = (t.view(batch, length, 2, width // 2).transpose(1, 2) for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return s.out(out.transpose(1, 2).contiguous().view(batch, length, width))


class Block(nn.Module):
    """A residual block with modules that write in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x
        return self.relu(out)


def _norm_case(module: Callable[[], nn.Module], *shape: int) -> Case:
    return _one(lambda s, x: s.m(x), *shape, m=module)


def _weighted(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


CASES: dict[str, Case] = {
    "relu_chain": _one(lambda _, x: F.elu(torch.relu(x) - 0.3) * F.hardswish(x), 5, 7),
    "activations": _one(
        lambda _, x: (
            F.selu(x), F.celu(x, 0.7), F.hardsigmoid(x), F.softsign(x), F.hardtanh(x), F.mish(x),
            F.logsigmoid(x), F.relu6(x), F.softplus(x, 2.0, 1.0), F.gelu(x), F.silu(x),
            F.gelu(x, approximate="tanh"), F.leaky_relu(x, 0.1), F.threshold(x, 0.1, -2.0),
            F.softshrink(x), F.hardshrink(x), F.tanhshrink(x), x.sign(), x.floor(), F.glu(x, 1),
        )[:19],
        16,
    ),
    "pow_and_friends": _one(
        lambda _, x: x**2 + x.abs() ** 1.5 - 2 / (x * x + 1) + x.clamp(-0.5, 0.5).exp(), 9
    ),
    "two_outputs": _one(lambda _, x: (x.softmax(-1), (x * 2).sum(1)), 13),
    "softmax_dim1": _one(lambda _, x: torch.softmax(x, 1), 5, 6, 3),
    "log_softmax": _one(lambda _, x: F.log_softmax(x, -1), 33),
    "sum_middle": _one(lambda _, x: x.sum(1, keepdim=True), 5, 6),
    "mean_all": _one(lambda _, x: x.mean(), 40, 7),
    "long_sum": _one(lambda _, x: (x * x).sum(), 40000),
    "max_dim": _one(lambda _, x: x.max(dim=1)[0], 8, 5),
    "argmax": _one(lambda _, x: x.argmax(dim=1), 8, 5),
    "argmin_last": _one(lambda _, x: torch.argmin(x, dim=-1), 70),
    "min_var_std": _one(lambda _, x: (x.min(1)[0], x.var(1), x.std(1), x.prod(1)), 9),
    "frobenius": _one(lambda _, x: x / torch.norm(x, p="fro"), 8, 5),
    "l1_norm": _one(lambda _, x: x / x.abs().mean(dim=1, keepdim=True), 8),
    "l2_norm": _one(lambda _, x: F.normalize(x, dim=1), 8),
    "cumsum": _one(lambda _, x: torch.cumsum(x, dim=1), 9),
    "cumprod": _one(lambda _, x: torch.cumprod(x, dim=1), 9),
    "reverse_cumsum": _one(lambda _, x: torch.cumsum(x.flip(1), dim=1).flip(1), 9),
    "exclusive_cumsum": _one(
        lambda _, x: torch.cumsum(torch.cat((torch.zeros_like(x[:, :1]), x), 1)[:, :-1], 1), 9
    ),
    "masked_cumsum": Case(
        lambda: TwoInputs(lambda _, x, y: torch.cumsum(x * y, dim=1)),
        lambda n: (torch.randn(n, 9), torch.rand(n, 9) > 0.5),
    ),
    "group_norm": _norm_case(lambda: _weighted(nn.GroupNorm(2, 8)), 8, 5, 5),
    "batch_norm_training": _norm_case(lambda: _weighted(nn.BatchNorm2d(6)), 6, 5, 5),
    "batch_norm_eval": _norm_case(lambda: _weighted(nn.BatchNorm2d(6)).eval(), 6, 5, 5),
    "instance_norm": _norm_case(lambda: nn.InstanceNorm2d(6), 6, 5, 5),
    "layer_norm": _norm_case(lambda: _weighted(nn.LayerNorm((6, 5, 5))), 6, 5, 5),
    "rms_norm": _one(
        lambda _, x: x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + 1e-5), 6, 5
    ),
    "linear_gelu_softmax": _one(
        lambda s, x: torch.softmax(F.gelu(s.m(x)), 1), 19, m=lambda: nn.Linear(19, 11)
    ),
    "mlp": _one(
        lambda s, x: s.m(x), 19,
        m=lambda: nn.Sequential(nn.Linear(19, 33), nn.ReLU(), nn.Linear(33, 8), nn.ReLU(),
                                nn.Linear(8, 3)),
    ),
    "matmul_transposed": Case(
        lambda: TwoInputs(lambda _, x, y: torch.matmul(x.T, y.T)),
        lambda n: (torch.randn(37, n), torch.randn(5, 37)),
    ),
    "bmm": Case(
        lambda: TwoInputs(lambda _, x, y: torch.bmm(x, y)),
        lambda n: (torch.randn(n, 5, 7), torch.randn(n, 7, 4)),
    ),
    "matmul_4d": Case(
        lambda: TwoInputs(lambda _, x, y: torch.einsum("bijl,lk->bijk", x, y)),
        lambda n: (torch.randn(n, 2, 3, 7), torch.randn(7, 4)),
    ),
    "matrix_vector": Case(
        lambda: TwoInputs(lambda _, x, y: x @ y), lambda n: (torch.randn(n, 70), torch.randn(70, 1))
    ),
    "triangular": Case(
        lambda: TwoInputs(lambda _, x, y: torch.triu(x @ y)),
        lambda n: (torch.randn(n, n), torch.randn(n, n)),
        sizes=(5, 8),
    ),
    "diagonal": Case(
        lambda: TwoInputs(lambda _, x, y: torch.diag(x) @ y),
        lambda n: (torch.randn(n), torch.randn(n, 4)),
    ),
    "conv2d_relu": _one(
        lambda s, x: torch.relu(s.m(x)) + s.b, 3, 9, 8,
        m=lambda: nn.Conv2d(3, 4, 3, padding=1),
        b=lambda: nn.Parameter(torch.randn(4, 1, 1)),
    ),
    "conv2d_strided_grouped": _norm_case(
        lambda: nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2), dilation=(2, 1), groups=2),
        4, 11, 9,
    ),
    "conv2d_depthwise_same": _norm_case(
        lambda: nn.Conv2d(4, 4, 3, padding="same", groups=4, bias=False), 4, 6, 6
    ),
    "conv1d": _norm_case(lambda: nn.Conv1d(3, 4, 3, stride=3, dilation=2), 3, 20),
    "conv3d": _norm_case(lambda: nn.Conv3d(2, 3, 3, padding=1), 2, 4, 5, 6),
    "conv_transpose1d": _norm_case(lambda: nn.ConvTranspose1d(3, 4, 5, dilation=3), 3, 9),
    "conv_transpose2d": _norm_case(
        lambda: nn.ConvTranspose2d(4, 6, (3, 4), stride=(2, 3), padding=1, output_padding=(1, 0),
                                   groups=2),
        4, 5, 6,
    ),
    "conv_transpose3d": _norm_case(
        lambda: nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1, output_padding=1), 2, 3, 3, 4
    ),
    "max_pool2d": _norm_case(lambda: nn.MaxPool2d(3, stride=2, padding=1, dilation=2), 3, 13, 12),
    "max_pool1d_ceil": _norm_case(lambda: nn.MaxPool1d(4, stride=3, ceil_mode=True), 3, 12),
    "max_pool3d": _norm_case(lambda: nn.MaxPool3d(2), 3, 5, 6, 7),
    "avg_pool2d": _norm_case(lambda: nn.AvgPool2d(3, stride=2, padding=1), 3, 9, 8),
    "avg_pool1d_no_pad": _norm_case(
        lambda: nn.AvgPool1d(3, stride=2, padding=1, count_include_pad=False), 3, 9
    ),
    "adaptive_pool": _one(
        lambda _, x: (F.adaptive_avg_pool2d(x, (2, 3)), F.adaptive_avg_pool2d(x, 1),
                      F.adaptive_avg_pool2d(x, (3, 4))), 3, 8, 9,
    ),
    "attention": _one(_attention, 5, 24),
    "attention_of_sized_heads": Case(
        lambda: TwoInputs(_sized_attention),
        lambda n: (torch.randn(2, 5, n), torch.randn(2, 5, n)),
        sizes=(6, 9),
    ),
    "sdpa": _one(
        _heads, 5, 8, qkv=lambda: nn.Linear(8, 24), out=lambda: nn.Linear(8, 8)
    ),
    "multi_head": _one(
        lambda s, x: s.m(x, x, x, need_weights=False)[0], 5, 8,
        m=lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    ),
    "residual_block": Case(Block, lambda n: (torch.randn(n, 4, 6, 6),)),
    "mse": _loss(F.mse_loss),
    "cross_entropy": _loss(F.cross_entropy, y=lambda n: torch.randint(0, 17, (n,))),
    "cross_entropy_2d": _loss(
        F.cross_entropy, x=lambda n: torch.randn(n, 5, 4), y=lambda n: torch.randint(0, 5, (n, 4))
    ),
    "cross_entropy_smooth": _loss(
        lambda x, y: F.cross_entropy(x, y, ignore_index=3, label_smoothing=0.1)
        + F.cross_entropy(x, y, torch.arange(17).float(), label_smoothing=0.2),
        y=lambda n: torch.arange(n) % 5,
    ),
    "cross_entropy_smooth_2d": _loss(
        lambda x, y: F.cross_entropy(
            x, y, torch.arange(5).float(), reduction="sum", label_smoothing=0.1
        ),
        x=lambda n: torch.randn(n, 5, 4), y=lambda n: torch.randint(0, 5, (n, 4)),
    ),
    "smooth_l1": _loss(F.smooth_l1_loss),
    "huber": _loss(F.huber_loss),
    "kl_div": _loss(
        lambda x, y: F.kl_div(torch.log(x), y, reduction="batchmean"),
        x=lambda n: torch.rand(n, 17).softmax(-1), y=lambda n: torch.rand(n, 17).softmax(-1),
    ),
    "bce": _loss(
        lambda x, y: F.binary_cross_entropy(torch.sigmoid(x), y)
        + F.binary_cross_entropy_with_logits(x, y),
        y=lambda n: torch.rand(n, 17),
    ),
    "cosine": _loss(lambda x, y: (1 - F.cosine_similarity(x, y, dim=1)).mean()),
    "hinge": _loss(
        lambda x, y: torch.mean(torch.clamp(1 - x * y, min=0)),
        x=lambda n: torch.randn(n, 17), y=lambda n: torch.randint(0, 2, (1, 17)).float() * 2 - 1,
    ),
    "triplet": _loss(lambda x, y: F.triplet_margin_loss(x, y, y.flip(0))),
    "views": _one(
        lambda _, x: torch.cat([x.permute(0, 2, 1)[:, 1:4, ::2], x.transpose(1, 2)[:, :3, :2]], 2)
        .reshape(x.shape[0], -1), 4, 6,
    ),
    "select_expand": _one(lambda _, x: x[:, 0].unsqueeze(1).expand(-1, 6, -1) + x[:, -1:], 4, 6),
    "stack_roll_pad": _one(
        lambda _, x: torch.stack([F.pad(x, (1, 2)), F.pad(x, (2, 1)).roll(1, 1)], dim=1), 6
    ),
    "reflect_pad_repeat": _one(lambda _, x: F.pad(x, (1, 2), mode="reflect").repeat(1, 2), 6),
    "upsample": _one(lambda _, x: F.interpolate(x, scale_factor=2), 2, 3, 4),
    "chunk_where": _one(
        lambda _, x: torch.where(x.chunk(2, 1)[0] > 0, x.chunk(2, 1)[1], -1.0), 8
    ),
    "embedding": Case(
        lambda: OneInput(lambda s, x: s.m(x).sum(1), m=nn.Embedding(10, 4)),
        lambda n: (torch.randint(0, 10, (n, 5)),),
    ),
    "gather": Case(
        lambda: TwoInputs(lambda _, x, y: x.gather(1, y)),
        lambda n: (torch.randn(n, 5), torch.randint(0, 5, (n, 3))),
    ),
    "state_in_forward": _one(
        lambda _, x: torch.zeros(x.shape[0], 6) + x + torch.arange(6) * 0.5, 6
    ),
    "half": Case(
        lambda: OneInput(lambda s, x: F.gelu(s.m(x)), m=nn.Linear(16, 8).half()),
        lambda n: (torch.randn(n, 16, dtype=torch.float16),),
    ),
    "bfloat16_norm": Case(
        lambda: OneInput(lambda s, x: s.m(x), m=_weighted(nn.LayerNorm(16)).bfloat16()),
        lambda n: (torch.randn(n, 16).bfloat16(),),
    ),
    "bfloat16_two_outputs": Case(
        lambda: OneInput(lambda _, x: (torch.relu(x), x.float().sum(-1))),
        lambda n: (torch.randn(n, 16).bfloat16(),),
    ),
}  # fmt: skip
