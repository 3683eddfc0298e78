#include "worker/model/causal_self_attention.h"

#include <cmath>
#include <utility>

#include "ops/reduce.h"
#include "ops/rotary.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

std::vector<JoinedLinear::Projection> Projections(
    const CausalSelfAttention::Options& options) {
  const int64_t q = options.heads * options.head_dim;
  const int64_t kv = options.kv_heads * options.head_dim;
  if (options.qkv.size() == 1) return {{options.qkv[0], q + 2 * kv}};
  CHECK_EQ(options.qkv.size(), 3u);
  return {{options.qkv[0], q}, {options.qkv[1], kv}, {options.qkv[2], kv}};
}

}  // namespace

absl::StatusOr<CausalSelfAttention> CausalSelfAttention::Create(
    const Unit& unit, const Options& options) {
  ASSIGN_OR_RETURN(
      JoinedLinear qkv,
      JoinedLinear::Create(unit, {.projections = Projections(options),
                                  .in = options.width,
                                  .layout = options.layout,
                                  .bias = options.bias}));
  ASSIGN_OR_RETURN(Linear out,
                   Linear::Create(unit, options.out,
                                  {.in = options.heads * options.head_dim,
                                   .out = options.width,
                                   .layout = options.layout,
                                   .bias = options.bias}));
  return CausalSelfAttention(std::move(qkv), std::move(out), options);
}

CausalSelfAttention::CausalSelfAttention(JoinedLinear qkv, Linear out,
                                         const Options& options)
    : qkv_(std::move(qkv)), out_(std::move(out)), options_(options) {}

float CausalSelfAttention::Scale() const {
  return static_cast<float>(1.0 /
                            std::sqrt(static_cast<double>(options_.head_dim)));
}

Tensor CausalSelfAttention::Queries(const Tensor& qkv) const {
  return qkv.Slice(2, 0, q_width());
}

Tensor CausalSelfAttention::Keys(const Tensor& qkv) const {
  return qkv.Slice(2, q_width(), q_width() + kv_width());
}

Tensor CausalSelfAttention::Values(const Tensor& qkv) const {
  return qkv.Slice(2, q_width() + kv_width(), q_width() + 2 * kv_width());
}

void CausalSelfAttention::Rotate(Device& device, const Rope& rope,
                                 const Rotation& rotation,
                                 const Tensor& qkv) const {
  if (rope.inverse_frequencies.empty()) return;
  Rotary(device, {.x = qkv.Slice(2, 0, q_width() + kv_width()),
                  .heads = options_.heads + options_.kv_heads,
                  .inverse_frequencies = rope.inverse_frequencies.data(),
                  .scale = rope.attention_factor,
                  .first_position = rotation.first_position,
                  .inverse = rotation.inverse});
}

void CausalSelfAttention::Forward(Device& device, void* parameters,
                                  const ForwardArgs& args) const {
  qkv_.Forward(device, parameters, {.x = args.x, .y = args.qkv});
  Rotate(device, options_.rope, {}, args.qkv);
  Attention(device, {.q = Queries(args.qkv),
                     .k = Keys(args.qkv),
                     .v = Values(args.qkv),
                     .o = args.o,
                     .logsumexp = args.logsumexp,
                     .heads = options_.heads,
                     .kv_heads = options_.kv_heads,
                     .scale = Scale(),
                     .dropout = args.dropout});
  out_.Forward(device, parameters, {.x = args.o, .y = args.y});
}

void CausalSelfAttention::BackwardInput(Device& device, void* parameters,
                                        const BackwardInputArgs& args) const {
  out_.BackwardInput(device, parameters, {.dy = args.dy, .dx = args.d_o});
  AttentionBackward(device, {.q = Queries(args.qkv),
                             .k = Keys(args.qkv),
                             .v = Values(args.qkv),
                             .o = args.o,
                             .logsumexp = args.logsumexp,
                             .d_o = args.d_o,
                             .dq = Queries(args.dqkv),
                             .dk = Keys(args.dqkv),
                             .dv = Values(args.dqkv),
                             .heads = options_.heads,
                             .kv_heads = options_.kv_heads,
                             .scale = Scale(),
                             .dropout = args.dropout});
  Rotate(device, options_.rope, {.inverse = true}, args.dqkv);
  qkv_.BackwardInput(device, parameters, {.dy = args.dqkv, .dx = args.dx});
}

void CausalSelfAttention::BackwardWeight(Device& device, void* gradients,
                                         const BackwardWeightArgs& args) const {
  out_.BackwardWeight(
      device, gradients,
      {.x = args.o, .dy = args.dy, .from_zero = args.from_zero});
  qkv_.BackwardWeight(
      device, gradients,
      {.x = args.x, .dy = args.dqkv, .from_zero = args.from_zero});
}

void CausalSelfAttention::Decode(Device& device, void* parameters,
                                 const DecodeArgs& args) const {
  const int64_t end = args.position + args.x.dim(1);
  qkv_.Forward(device, parameters, {.x = args.x, .y = args.qkv});
  Rotate(device, options_.decode_rope, {.first_position = args.position},
         args.qkv);
  Copy(device, {.x = args.qkv.Slice(2, q_width(), q_width() + 2 * kv_width()),
                .y = args.cache.Slice(1, args.position, end)});
  const Tensor seen = args.cache.Slice(1, 0, end);
  Attention(device, {.q = Queries(args.qkv),
                     .k = seen.Slice(2, 0, kv_width()),
                     .v = seen.Slice(2, kv_width(), 2 * kv_width()),
                     .o = args.o,
                     .heads = options_.heads,
                     .kv_heads = options_.kv_heads,
                     .scale = Scale()});
  out_.Forward(device, parameters, {.x = args.o, .y = args.y});
}

}  // namespace troupe
