"""GPT-2 124M, a Llama of its size and a Mixtral of whose parameters a token
meets as many, GPT-2 1.5B and a Llama of 1.1B, as plain PyTorch modules: the
models of bench_job.cc. Only the Mixtral needs transformers (pytorch_experts.py).

The same arithmetic as `transformers`, with fewer Python calls and no cache:
attention is torch.nn.functional.scaled_dot_product_attention, there is no
dropout, and the loss is the mean over all tokens. pytorch_tensor.py cuts them
over processes: how many heads a process has follows from what its products
give.
"""

import torch
from torch import nn
from torch.nn import functional

MODELS = {
    "gpt2": dict(layers=12, hidden=768, heads=12, kv_heads=12,
                 intermediate=3072, vocab=50257, positions=1024),
    "gpt2-1.5b": dict(layers=48, hidden=1600, heads=25, kv_heads=25,
                      intermediate=6400, vocab=50257, positions=1024),
    "llama": dict(layers=12, hidden=768, heads=12, kv_heads=4,
                  intermediate=2048, vocab=32000, positions=1024),
    "mixtral": dict(layers=12, hidden=768, heads=12, kv_heads=4,
                    intermediate=1024, vocab=32000, positions=1024, experts=8,
                    choices=2),
    "llama-1b": dict(layers=22, hidden=2048, heads=32, kv_heads=4,
                     intermediate=5632, vocab=32000, positions=4096),
}


class Gpt2Attention(nn.Module):
    def __init__(self, hidden, heads, **_):
        super().__init__()
        self.head_dim = hidden // heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x, rope):
        q, k, v = self.qkv(x).unflatten(-1, (-1, self.head_dim)).transpose(
            1, 2).chunk(3, dim=1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Gpt2Mlp(nn.Module):
    def __init__(self, hidden, intermediate, **_):
        super().__init__()
        self.up = nn.Linear(hidden, intermediate)
        self.down = nn.Linear(intermediate, hidden)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class LlamaAttention(nn.Module):
    def __init__(self, hidden, heads, kv_heads, **_):
        super().__init__()
        self.head_dim = hidden // heads
        self.q = nn.Linear(hidden, hidden, bias=False)
        self.k = nn.Linear(hidden, kv_heads * self.head_dim, bias=False)
        self.v = nn.Linear(hidden, kv_heads * self.head_dim, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, rope):
        q = rotate(self.split(self.q(x)), rope)
        k = rotate(self.split(self.k(x)), rope)
        y = functional.scaled_dot_product_attention(
            q, k, self.split(self.v(x)), is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))

    def split(self, x):
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


class LlamaMlp(nn.Module):
    def __init__(self, hidden, intermediate, **_):
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x):
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, gpt2, sizes):
        super().__init__()
        self.norm_1 = norm(gpt2, sizes)
        self.attention = (Gpt2Attention if gpt2 else LlamaAttention)(**sizes)
        self.norm_2 = norm(gpt2, sizes)
        self.mlp = mlp(gpt2, sizes)

    def forward(self, x, rope):
        x = x + self.attention(self.norm_1(x), rope)
        return x + self.mlp(self.norm_2(x))


def mlp(gpt2, sizes):
    if "experts" in sizes:
        import pytorch_experts
        return pytorch_experts.Experts(**sizes)
    return (Gpt2Mlp if gpt2 else LlamaMlp)(**sizes)


def norm(gpt2, sizes):
    return (nn.LayerNorm(sizes["hidden"]) if gpt2 else
            nn.RMSNorm(sizes["hidden"], eps=1e-6))


def rotate(x, rope):
    cos, sin = rope
    a, b = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat((-b, a), dim=-1) * sin.to(x.dtype)


class Positions(nn.Module):
    """forward(x) is x and the places of its tokens in their sequence."""

    def __init__(self, sizes):
        super().__init__()
        self.weight = nn.Parameter(
            torch.empty(sizes["positions"], sizes["hidden"]))

    def forward(self, x):
        return x + self.weight[:x.shape[1]]


class LanguageModel(nn.Module):
    """forward(tokens, targets) is the loss."""

    def __init__(self, architecture, sizes):
        super().__init__()
        hidden, vocab = sizes["hidden"], sizes["vocab"]
        gpt2 = architecture == "gpt2"
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = Positions(sizes) if gpt2 else None
        self.blocks = nn.ModuleList(
            Block(gpt2, sizes) for _ in range(sizes["layers"]))
        self.norm = norm(gpt2, sizes)
        self.head = nn.Linear(hidden, vocab, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=0.02)
        if gpt2:
            self.head.weight = self.tokens.weight
        else:
            dim = hidden // sizes["heads"]
            angles = torch.outer(
                torch.arange(sizes["positions"]).float(),
                10000.0 ** -(torch.arange(0, dim, 2).float() / dim))
            angles = torch.cat((angles, angles), dim=-1)
            self.register_buffer("cos", angles.cos(), persistent=False)
            self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        rope = None
        if self.positions is None:
            length = tokens.shape[1]
            rope = self.cos[:length], self.sin[:length]
        else:
            x = self.positions(x)
        for block in self.blocks:
            x = block(x, rope)
        return self.loss(x, targets)

    def loss(self, x, targets):
        logits = self.head(self.norm(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1),
                                        targets.flatten())


def build(name, positions=0):
    """With room for `positions` positions, where the model's own are fewer."""
    torch.manual_seed(1)
    sizes = MODELS[name]
    sizes = dict(sizes, positions=max(sizes["positions"], positions))
    return LanguageModel(name.partition("-")[0], sizes)
