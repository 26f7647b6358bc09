# SPDX-License-Identifier: MIT
"""A transformer with paged KV and random weights: one forward() for decode, prefill and both.

forward() reads its inputs from fixed buffers and waits for nothing, so that a CUDA graph of it
can be launched again and again. Decode attends to the pages where they lie, each page as a batch
of its own, and adds the pages up: each key and value is read once and nothing is gathered.
"""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from policy import SHAPES, Shape  # noqa: F401

TRASH = 0               # the page for tokens of rows that have no request
MASKED = -1e30          # finite: a page without tokens must not make NaN of its neighbours


def norm(x: Any, delta: Any, weight: Any) -> Any:
    """The residual stream with @delta added, and that normalised."""
    x = x + delta
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
    return x, wide.to(x.dtype) * weight


def turn(x: Any, cos: Any, sin: Any) -> Any:
    """[.., heads, head] turned by position, without a concatenation: that would be a kernel."""
    wide = x.float()
    halves = wide.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
    return (wide * cos + halves * sin).to(x.dtype)


def store(k: Any, v: Any, cos: Any, sin: Any, keys: Any, values: Any, page: Any,
          offset: Any) -> None:
    """Puts keys, turned, and values of [tokens, KV heads, head] into their pages."""
    keys[page, :, offset], values[page, :, offset] = turn(k, cos, sin), v


def page_queries(q: Any, cos: Any, sin: Any, pick: Any) -> Any:
    """Of each page, the queries of the row that it belongs to: [page, head, size]."""
    return turn(q[pick], cos[pick], sin[pick])


def chunk_queries(q: Any, cos: Any, sin: Any, kv_heads: int) -> Any:
    """[token, head, size] as [KV head, head of its group, token, size]."""
    return turn(q, cos, sin).unflatten(1, (kv_heads, -1)).permute(1, 2, 0, 3).contiguous()


def page_softmax(scores: Any, used: Any, scale: float) -> Any:
    """Of [page, KV head, query, token]: powers, their greatest exponent, and their sum."""
    token = torch.arange(scores.shape[-1], device=scores.device)
    scores = torch.where(token < used[:, None, None, None], scores.float() * scale, MASKED)
    most = scores.amax(-1)
    powers = torch.exp(scores - most[..., None])
    return powers.to(torch.bfloat16 if scores.is_cuda else torch.float32), most, powers.sum(-1)


def weigh(out: Any, most: Any, total: Any, member: Any, pick: Any) -> Any:
    """Each page's part of its row's result: [page, heads * size], to be added up by row."""
    here = torch.where(member[:, :, None], most[None], MASKED)
    row_most = here.amax(1)
    row_total = (torch.exp(here - row_most[:, None]) * total[None]).sum(1)
    weight = torch.exp(most - row_most[pick]) / row_total[pick].clamp(min=1e-20)
    return (out.float() * weight[..., None]).to(out.dtype).flatten(1)


def gate(x: Any) -> Any:
    a, b = x.chunk(2, dim=-1)
    return F.silu(a) * b


class Buffer:
    """Integers that the host writes, and their copy on the device: upload() in stream order."""

    def __init__(self, device: str, **sizes: int) -> None:
        self.host = torch.zeros(sum(sizes.values()), dtype=torch.int64, pin_memory=device != "cpu")
        self._device = torch.zeros_like(self.host, device=device)
        self.on = dict(zip(sizes, self._device.split(list(sizes.values()))))
        self.of: dict[str, Any] = {
            name: (ctypes.c_int64 * len(part)).from_address(part.data_ptr())
            for name, part in zip(sizes, self.host.split(list(sizes.values())))}

    def upload(self) -> None:
        self._device.copy_(self.host, non_blocking=True)


class Model:
    """Weights, pages and buffers; .decode and .prefill are what a step reads."""

    def __init__(self, shape: Shape, device: str, seed: int = 0, fuse: bool = True) -> None:
        self.shape, self.device = shape, device
        s, self.dtype = shape, torch.bfloat16 if device != "cpu" else torch.float32
        make = torch.Generator(device=device).manual_seed(seed)

        def weight(rows: int, columns: int) -> Any:
            empty = torch.empty(rows, columns, device=device, dtype=self.dtype)
            return empty.normal_(0, rows ** -0.5, generator=make)
        self.embed = weight(s.vocab, s.hidden).normal_(0, 1, generator=make)
        self.unembed = weight(s.hidden, s.vocab)
        self.one = torch.ones(s.hidden, device=device, dtype=self.dtype)
        self.layers = [(weight(s.hidden, (s.heads + 2 * s.kv_heads) * s.head),
                        weight(s.heads * s.head, s.hidden), weight(s.hidden, 2 * s.ffn),
                        weight(s.ffn, s.hidden)) for _ in range(s.layers)]
        self.nr_weights = sum(w.numel() for w in itertools.chain((self.unembed,), *self.layers))
        pages = (s.layers, s.pages, s.kv_heads, s.page, s.head)
        self.keys, self.values = (torch.zeros(pages, device=device, dtype=self.dtype)
                                  for _ in range(2))
        turn = 500000.0 ** (-torch.arange(0, s.head, 2, device=device).float() / s.head)
        at = torch.arange(2 * s.contexts[-1], device=device).float()[:, None] * turn
        self.cos = torch.cat((at.cos(), at.cos()), -1)[:, None]
        self.sin = torch.cat((-at.sin(), at.sin()), -1)[:, None]
        rows = s.rows[-1]
        self.decode = Buffer(device, position=rows, write=rows, fresh=rows, owner=s.pages,
                             used=s.pages)
        self.prefill = Buffer(device, token=s.chunks[-1], position=s.chunks[-1],
                              write=s.chunks[-1], table=s.contexts[-1] // s.page, final=1, row=1)
        #: The last token of each row: of a decode step, and of a prefill. Two, as a decode step
        #: writes those of all its rows while a prefill may be under way.
        self.last, self.first = (torch.zeros(rows, dtype=torch.int64, device=device)
                                 for _ in range(2))
        fuse = fuse and device != "cpu" and hasattr(torch, "compile")
        self.op: dict[str, Callable[..., Any]] = {
            f.__name__: torch.compile(f) if fuse else f
            for f in (norm, store, page_queries, chunk_queries, page_softmax, weigh, gate)}

    def step_bytes(self, pages: int) -> int:
        """What a decode step reads: the weights, without the embedding, and @pages."""
        s = self.shape
        numbers = self.nr_weights + 2 * pages * s.layers * s.kv_heads * s.page * s.head
        return numbers * self.keys.element_size()

    def forward(self, rows: int, chunk: int, context: int, pages: int) -> None:
        """A token for each of @rows, whose KV lies in the first @pages; @chunk tokens of a prompt
        that has at most @context with them. Either may be 0. Results are in .last and .first."""
        s, op, dec, pre = self.shape, self.op, self.decode.on, self.prefill.on
        inputs = []
        if rows:
            row = torch.arange(rows, device=self.device)
            token = torch.where(dec["fresh"][:rows] > 0, self.first[:rows], self.last[:rows])
            inputs.append((token, dec["position"][:rows], dec["write"][:rows], row))
            owner, used = dec["owner"][:pages], dec["used"][:pages]
            member = owner[None] == row[:, None]
            view = (member, member.to(self.dtype), owner.clamp(max=rows - 1), used)
        if chunk:
            inputs.append((pre["token"][:chunk], pre["position"][:chunk], pre["write"][:chunk],
                           rows + pre["final"]))
            seen = torch.arange(context, device=self.device) <= pre["position"][:chunk, None]
            bias = torch.zeros(chunk, context, device=self.device, dtype=self.dtype)
            bias = bias.masked_fill(~seen, float("-inf")).repeat(s.heads // s.kv_heads, 1)
            table = pre["table"][:context // s.page]
        token, at, where, which = map(torch.cat, zip(*inputs))
        x, delta = self.embed[token], 0
        cos, sin = self.cos[at], self.sin[at]
        page, offset = where // s.page, where % s.page
        for (wqkv, wo, wup, wdown), keys, values in zip(self.layers, self.keys, self.values):
            x, h = op["norm"](x, delta, self.one)
            q, k, v = (h @ wqkv).view(-1, s.heads + 2 * s.kv_heads, s.head).split(
                (s.heads, s.kv_heads, s.kv_heads), 1)
            op["store"](k, v, cos, sin, keys, values, page, offset)
            out = []
            if rows:
                q_pages = op["page_queries"](q[:rows], cos[:rows], sin[:rows], view[2])
                out.append(self._decode(q_pages, keys[:pages], values[:pages], *view))
            if chunk:
                q_chunk = op["chunk_queries"](q[rows:], cos[rows:], sin[rows:], s.kv_heads)
                out.append(self._prefill(q_chunk, keys[table], values[table], bias))
            h = torch.cat(out) if len(out) > 1 else out[0]
            x, h = op["norm"](x, h @ wo, self.one)
            delta = op["gate"](h @ wup) @ wdown
        _, h = op["norm"](x[which], delta[which], self.one)
        best = (h @ self.unembed).argmax(-1)
        if rows:
            self.last[:rows] = best[:rows]
        if chunk:
            self.first.index_copy_(0, pre["row"], best[rows:])

    def _decode(self, q: Any, keys: Any, values: Any, member: Any, ones: Any, pick: Any,
                used: Any) -> Any:
        s = self.shape
        group = s.heads // s.kv_heads
        scores = torch.bmm(q.view(-1, group, s.head), keys.flatten(0, 1).transpose(1, 2))
        powers, most, total = self.op["page_softmax"](
            scores.view(-1, s.kv_heads, group, s.page), used, s.head ** -0.5)
        out = torch.bmm(powers.flatten(0, 1), values.flatten(0, 1)).view(-1, s.heads, s.head)
        return ones @ self.op["weigh"](out, most.view(-1, s.heads), total.view(-1, s.heads),
                                       member, pick)

    def _prefill(self, q: Any, keys: Any, values: Any, bias: Any) -> Any:
        s, nr, q = self.shape, q.shape[2], q.flatten(1, 2)
        k, v = (x.transpose(0, 1).flatten(1, 2) for x in (keys, values))
        if hasattr(F, "scaled_dot_product_attention"):
            out = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=bias)[0]
        else:                           # PyTorch 1
            out = torch.softmax(q @ k.transpose(-1, -2) * s.head ** -0.5 + bias, -1) @ v
        return out.view(s.kv_heads, -1, nr, s.head).permute(2, 0, 1, 3).reshape(nr, -1)
