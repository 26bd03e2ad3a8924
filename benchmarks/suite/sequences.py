"""Attention, recurrent networks and state-space models."""

from benchmarks.suite.table import SuiteTask

_HEADS = "torch.randn(batch, heads, length, width)"
_CAUSAL_BLOCK = """
class Attention(nn.Module):
    \"\"\"Causal self-attention of several heads.\"\"\"

    def __init__(self, heads):
        super().__init__()
        self.heads = heads
        self.joint = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)))

    def forward(self, x):
        parts = self.joint(x).unflatten(-1, (3, self.heads, width // self.heads))
        q, k, v = (part.transpose(1, 2) for part in parts.unbind(2))
        scores = q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(self.mask == 0, float("-inf"))
        y = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2)
        return self.out(y.reshape(x.shape))
"""

TASKS = (
    SuiteTask(
        name="scaled_dot_product_attention",
        title="Attention of 2 GB a tensor.",
        sizes={"batch": (32, 1), "heads": (32, 2), "length": (512, 16), "width": (1024, 8)},
        inputs=f"{_HEADS}, {_HEADS}, {_HEADS}",
        arguments="q, k, v",
        forward="return F.scaled_dot_product_attention(q, k, v)",
    ),
    SuiteTask(
        name="causal_attention",
        title="Causal self-attention with its projections.",
        sizes={"batch": (128, 2), "length": (512, 12), "width": (768, 32)},
        inputs="torch.randn(batch, length, width)",
        helpers=_CAUSAL_BLOCK,
        init="self.attention = Attention(8)",
        forward="return self.attention(x)",
    ),
    SuiteTask(
        name="mini_gpt_block",
        title="A block of a small transformer.",
        sizes={"batch": (128, 2), "length": (512, 12), "width": (768, 32)},
        inputs="torch.randn(batch, length, width)",
        helpers=_CAUSAL_BLOCK,
        init="""
            self.attention = Attention(8)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )
        """,
        forward="x = x + self.attention(self.norms[0](x))\nreturn x + self.mlp(self.norms[1](x))",
    ),
    SuiteTask(
        name="lstm_state_in_forward",
        title="An LSTM of six layers whose state is made in forward.",
        sizes={"batch": (10, 2), "length": (512, 5), "width": (128, 8), "hidden": (256, 8)},
        inputs="torch.randn(batch, length, width)",
        init="""
            self.lstm = nn.LSTM(width, hidden, 6, batch_first=True)
            self.head = nn.Linear(hidden, 10)
        """,
        forward="""
            state = torch.zeros(6, x.size(0), hidden, dtype=torch.float32, device=x.device)
            y, _ = self.lstm(x, (state, state.clone()))
            return self.head(y[:, -1])
        """,
    ),
    SuiteTask(
        name="gru_bidirectional",
        title="A bidirectional GRU of six layers.",
        sizes={"batch": (10, 2), "length": (512, 5), "width": (128, 8), "hidden": (256, 8)},
        inputs="torch.randn(length, batch, width), torch.randn(12, batch, hidden)",
        arguments="x, h0",
        init="self.gru = nn.GRU(width, hidden, 6, bidirectional=True)",
        forward="return self.gru(x, h0)[0]",
    ),
    SuiteTask(
        name="rnn_cell_unrolled",
        title="A plain recurrent cell over a sequence.",
        sizes={"batch": (8, 2), "length": (256, 4), "width": (1024, 8), "hidden": (256, 8)},
        inputs="torch.randn(length, batch, width), torch.rand(batch, hidden)",
        arguments="x, h",
        init="""
            self.cell = nn.Linear(width + hidden, hidden)
            self.head = nn.Linear(hidden, 128)
        """,
        forward="""
            outputs = []
            for step in x:
                h = torch.tanh(self.cell(torch.cat((step, h), dim=1)))
                outputs.append(self.head(h))
            return torch.stack(outputs)
        """,
    ),
    SuiteTask(
        name="selective_scan_chunks",
        title="A state-space model in chunks, as Mamba 2 has it.",
        sizes={"batch": (2048, 1), "length": (128, 16), "heads": (8, 2), "width": (64, 8),
               "state": (16, 4), "chunk": (64, 8)},
        inputs="torch.randn(batch, length, heads, width)",
        init="""
            self.a = nn.Parameter(-torch.rand(batch, length, heads))
            self.b = nn.Parameter(torch.randn(batch, length, heads, state))
            self.c = nn.Parameter(torch.randn(batch, length, heads, state))
        """,
        helpers="""
            def segments(a):
                total = a.cumsum(-1)
                sums = total[..., :, None] - total[..., None, :]
                mask = torch.tril(torch.ones(a.size(-1), a.size(-1), device=a.device))
                return sums.masked_fill(mask == 0, float("-inf"))
        """,
        forward="""
            x, b, c = (t.unflatten(1, (-1, chunk)) for t in (x, self.b, self.c))
            a = self.a.unflatten(1, (-1, chunk)).permute(0, 3, 1, 2)
            total = a.cumsum(-1)
            inner = torch.einsum(
                "bclhn,bcshn,bhcls,bcshp->bclhp", c, b, segments(a).exp(), x
            )
            decay = torch.exp(total[..., -1:] - total)
            states = torch.einsum("bclhn,bhcl,bclhp->bchpn", b, decay, x)
            states = torch.cat((torch.zeros_like(states[:, :1]), states), dim=1)
            between = segments(F.pad(total[..., -1], (1, 0))).exp()
            states = torch.einsum("bhzc,bchpn->bzhpn", between, states)[:, :-1]
            outer = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, total.exp())
            return (inner + outer).flatten(1, 2)
        """,
    ),
    SuiteTask(
        name="window_attention",
        title="Attention within shifted windows of an image, as Swin has it.",
        sizes={"batch": (32, 1), "side": (56, 14), "width": (96, 24)},
        inputs="torch.randn(batch, side, side, width)",
        init="""
            self.heads = 3
            self.norm = nn.LayerNorm(width)
            self.joint = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.bias = nn.Parameter(0.02 * torch.randn(self.heads, 49, 49))
        """,
        forward="""
            y = torch.roll(self.norm(x), (-3, -3), dims=(1, 2))
            y = y.unflatten(2, (-1, 7)).unflatten(1, (-1, 7)).transpose(2, 3)
            windows = y.reshape(-1, 49, width)
            parts = self.joint(windows).unflatten(-1, (3, self.heads, -1)).transpose(1, 3)
            q, k, v = parts.unbind(2)
            weights = torch.softmax(q @ k.mT * q.size(-1) ** -0.5 + self.bias, dim=-1)
            y = self.out((weights @ v).transpose(1, 2).flatten(2))
            y = y.reshape(-1, side // 7, side // 7, 7, 7, width).transpose(2, 3).reshape(x.shape)
            return x + torch.roll(y, (3, 3), dims=(1, 2))
        """,
    ),
)  # fmt: skip
