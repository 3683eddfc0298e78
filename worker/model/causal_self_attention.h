// Multi-head causal self-attention, as GPT-2 builds it: one product for
// queries, keys and values, attention by blocks, one product back.
//
//   qkv = x Wa + ba;  o = attention(qkv);  y = o Wp + bp
//
// Shapes: x, y, o are [batch, time, width], qkv is [batch, time, 3 width].
#ifndef TROUPE_WORKER_MODEL_CAUSAL_SELF_ATTENTION_H_
#define TROUPE_WORKER_MODEL_CAUSAL_SELF_ATTENTION_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "worker/model/linear.h"

namespace troupe {

class CausalSelfAttention {
 public:
  struct Options {
    std::string prefix;  // of `<prefix>.c_attn` and `<prefix>.c_proj`
    int64_t width = 0;
    int heads = 0;  // divides width
  };
  // InvalidArgument as FindParameter.
  static absl::StatusOr<CausalSelfAttention> Create(const Unit& unit,
                                                    const Options& options);

  struct ForwardArgs {
    Tensor x;
    Tensor qkv;        // written, kept for the backward, as are o and logsumexp
    Tensor o;          // written
    Tensor logsumexp;  // [batch, heads, time], written
    Tensor y;          // written
    AttentionDropout dropout;
  };
  void Forward(Device& device, void* parameters, const ForwardArgs& args) const;

  struct BackwardInputArgs {
    Tensor dy;
    Tensor qkv;
    Tensor o;
    Tensor logsumexp;
    Tensor d_o;                // written: scratch of o's shape
    Tensor dqkv;               // written, for BackwardWeight
    Tensor dx;                 // written
    AttentionDropout dropout;  // as in the forward
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor dqkv;
    Tensor o;
    Tensor dy;
  };
  // Adds to the flat buffer of gradients.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

  // Generation: x, y, o [1, count, width], qkv [1, count, 3 width]; the cache,
  // [1, positions, 2 width], holds keys and values of the first `position`
  // positions and receives the new ones.
  struct DecodeArgs {
    Tensor x;
    Tensor qkv;
    Tensor o;
    Tensor y;
    Tensor cache;
    int64_t position = 0;
  };
  void Decode(Device& device, void* parameters, const DecodeArgs& args) const;

 private:
  CausalSelfAttention(Linear c_attn, Linear c_proj, const Options& options);
  float Scale() const;

  Linear c_attn_;
  Linear c_proj_;
  int64_t width_;
  int heads_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_CAUSAL_SELF_ATTENTION_H_
