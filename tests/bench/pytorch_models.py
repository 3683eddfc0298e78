"""GPT-2 124M and a Llama of its size, GPT-2 1.5B and a Llama of 1.1B, as plain
PyTorch modules: the models of bench_job.cc.

The same arithmetic as `transformers`, with fewer Python calls and no cache:
attention is torch.nn.functional.scaled_dot_product_attention, there is no
dropout, and the loss is the mean over all tokens.
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
    "llama-1b": dict(layers=22, hidden=2048, heads=32, kv_heads=4,
                     intermediate=5632, vocab=32000, positions=4096),
}


class Gpt2Block(nn.Module):
    def __init__(self, hidden, heads, intermediate, **_):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.attention = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, intermediate)
        self.down = nn.Linear(intermediate, hidden)

    def forward(self, x, rope):
        batch, length, hidden = x.shape
        q, k, v = self.attention(self.ln_1(x)).view(
            batch, length, 3 * self.heads, -1).transpose(1, 2).chunk(3, dim=1)
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(out.transpose(1, 2).reshape(x.shape))
        return x + self.down(
            functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    def __init__(self, hidden, heads, kv_heads, intermediate, **_):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.head_dim = hidden // heads
        self.norm_1 = nn.RMSNorm(hidden, eps=1e-6)
        self.q = nn.Linear(hidden, hidden, bias=False)
        self.k = nn.Linear(hidden, kv_heads * self.head_dim, bias=False)
        self.v = nn.Linear(hidden, kv_heads * self.head_dim, bias=False)
        self.o = nn.Linear(hidden, hidden, bias=False)
        self.norm_2 = nn.RMSNorm(hidden, eps=1e-6)
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x, rope):
        y = self.norm_1(x)
        q = rotate(self.split(self.q(y), self.heads), rope)
        k = rotate(self.split(self.k(y), self.kv_heads), rope)
        v = self.split(self.v(y), self.kv_heads)
        out = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(out.transpose(1, 2).reshape(x.shape))
        y = self.norm_2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    def split(self, x, heads):
        return x.view(*x.shape[:2], heads, self.head_dim).transpose(1, 2)


def rotate(x, rope):
    cos, sin = rope
    a, b = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat((-b, a), dim=-1) * sin.to(x.dtype)


class LanguageModel(nn.Module):
    """forward(tokens, targets) is the loss."""

    def __init__(self, architecture, sizes):
        super().__init__()
        hidden, vocab = sizes["hidden"], sizes["vocab"]
        gpt2 = architecture == "gpt2"
        block = Gpt2Block if gpt2 else LlamaBlock
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(sizes["positions"],
                                      hidden) if gpt2 else None
        self.blocks = nn.ModuleList(
            block(**sizes) for _ in range(sizes["layers"]))
        self.norm = (nn.LayerNorm if gpt2 else nn.RMSNorm)(hidden)
        self.head = nn.Linear(hidden, vocab, bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
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
            x = x + self.positions.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x, rope)
        return self.loss(x, targets)

    def loss(self, x, targets):
        logits = self.head(self.norm(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1),
                                        targets.flatten())


def build(name):
    torch.manual_seed(1)
    return LanguageModel(name.partition("-")[0], MODELS[name])
