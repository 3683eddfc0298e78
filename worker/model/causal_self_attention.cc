#include "worker/model/causal_self_attention.h"

#include <cmath>
#include <utility>

#include "ops/reduce.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

// The part'th of three column blocks: queries, keys, values.
Tensor Part(const Tensor& qkv, int part) {
  const int64_t width = qkv.columns() / 3;
  return qkv.Slice(2, part * width, (part + 1) * width);
}

}  // namespace

absl::StatusOr<CausalSelfAttention> CausalSelfAttention::Create(
    const Unit& unit, const Options& options) {
  ASSIGN_OR_RETURN(
      Linear c_attn,
      Linear::Create(unit, options.prefix + ".c_attn",
                     {.in = options.width, .out = 3 * options.width}));
  ASSIGN_OR_RETURN(Linear c_proj,
                   Linear::Create(unit, options.prefix + ".c_proj",
                                  {.in = options.width, .out = options.width}));
  return CausalSelfAttention(std::move(c_attn), std::move(c_proj), options);
}

CausalSelfAttention::CausalSelfAttention(Linear c_attn, Linear c_proj,
                                         const Options& options)
    : c_attn_(std::move(c_attn)),
      c_proj_(std::move(c_proj)),
      width_(options.width),
      heads_(options.heads) {}

float CausalSelfAttention::Scale() const {
  return static_cast<float>(1.0 /
                            std::sqrt(static_cast<double>(width_) / heads_));
}

void CausalSelfAttention::Forward(Device& device, void* parameters,
                                  const ForwardArgs& args) const {
  c_attn_.Forward(device, parameters, {.x = args.x, .y = args.qkv});
  Attention(device, {.q = Part(args.qkv, 0),
                     .k = Part(args.qkv, 1),
                     .v = Part(args.qkv, 2),
                     .o = args.o,
                     .logsumexp = args.logsumexp,
                     .heads = heads_,
                     .kv_heads = heads_,
                     .scale = Scale(),
                     .dropout = args.dropout});
  c_proj_.Forward(device, parameters, {.x = args.o, .y = args.y});
}

void CausalSelfAttention::BackwardInput(Device& device, void* parameters,
                                        const BackwardInputArgs& args) const {
  c_proj_.BackwardInput(device, parameters, {.dy = args.dy, .dx = args.d_o});
  AttentionBackward(device, {.q = Part(args.qkv, 0),
                             .k = Part(args.qkv, 1),
                             .v = Part(args.qkv, 2),
                             .o = args.o,
                             .logsumexp = args.logsumexp,
                             .d_o = args.d_o,
                             .dq = Part(args.dqkv, 0),
                             .dk = Part(args.dqkv, 1),
                             .dv = Part(args.dqkv, 2),
                             .heads = heads_,
                             .kv_heads = heads_,
                             .scale = Scale(),
                             .dropout = args.dropout});
  c_attn_.BackwardInput(device, parameters, {.dy = args.dqkv, .dx = args.dx});
}

void CausalSelfAttention::BackwardWeight(Device& device, void* gradients,
                                         const BackwardWeightArgs& args) const {
  c_proj_.BackwardWeight(device, gradients, {.x = args.o, .dy = args.dy});
  c_attn_.BackwardWeight(device, gradients, {.x = args.x, .dy = args.dqkv});
}

void CausalSelfAttention::Decode(Device& device, void* parameters,
                                 const DecodeArgs& args) const {
  const int64_t end = args.position + args.x.dim(1);
  c_attn_.Forward(device, parameters, {.x = args.x, .y = args.qkv});
  Copy(device, {.x = args.qkv.Slice(2, width_, 3 * width_),
                .y = args.cache.Slice(1, args.position, end)});
  const Tensor seen = args.cache.Slice(1, 0, end);
  Attention(device, {.q = Part(args.qkv, 0),
                     .k = seen.Slice(2, 0, width_),
                     .v = seen.Slice(2, width_, 2 * width_),
                     .o = args.o,
                     .heads = heads_,
                     .kv_heads = heads_,
                     .scale = Scale()});
  c_proj_.Forward(device, parameters, {.x = args.o, .y = args.y});
}

}  // namespace troupe
