// Multi-head causal self-attention: queries, keys and values side by side, as
// one product where their weights are (GPT-2) or may be (Llama), attention by
// blocks, one product back.
//
//   qkv = x Wa + ba;  rotate(qkv);  o = attention(qkv);  y = o Wp + bp
//
// Keys and values may have fewer heads than queries (grouped-query attention,
// arXiv 2305.13245), and queries and keys may be rotated by their positions
// (proto/plan/rope.h). Shapes: x, y are [batch, time, width], o is [batch,
// time, heads x head_dim], qkv is [batch, time, (heads + 2 kv_heads) x
// head_dim].
#ifndef TROUPE_WORKER_MODEL_CAUSAL_SELF_ATTENTION_H_
#define TROUPE_WORKER_MODEL_CAUSAL_SELF_ATTENTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "proto/plan/rope.h"
#include "worker/model/joined_linear.h"
#include "worker/model/linear.h"

namespace troupe {

class CausalSelfAttention {
 public:
  struct Options {
    // Prefixes of weights and biases: one for queries, keys and values
    // together, or one each; and of the product back.
    std::vector<std::string> qkv;
    std::string out;
    WeightLayout layout = WeightLayout::kInOut;
    bool bias = true;
    int64_t width = 0;
    int heads = 0;
    int kv_heads = 0;  // divides heads
    int64_t head_dim = 0;
    // Of training passes and of Decode; without frequencies nothing rotates.
    Rope rope;
    Rope decode_rope;
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
    bool from_zero = false;
  };
  // Adds to the flat buffer of gradients; from_zero: which holds zeros.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

  // Generation, of one sequence: the batch is 1 and the time is `count`; the
  // cache, [1, positions, 2 kv_heads x head_dim], holds keys and values of the
  // first `position` positions and receives the new ones.
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
  CausalSelfAttention(JoinedLinear qkv, Linear out, const Options& options);

  float Scale() const;
  int64_t q_width() const { return options_.heads * options_.head_dim; }
  int64_t kv_width() const { return options_.kv_heads * options_.head_dim; }
  // Columns of qkv, or of its gradient.
  Tensor Queries(const Tensor& qkv) const;
  Tensor Keys(const Tensor& qkv) const;
  Tensor Values(const Tensor& qkv) const;

  struct Rotation {
    int64_t first_position = 0;
    bool inverse = false;
  };
  // Turns queries and keys in place.
  void Rotate(Device& device, const Rope& rope, const Rotation& rotation,
              const Tensor& qkv) const;

  JoinedLinear qkv_;
  Linear out_;
  Options options_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_CAUSAL_SELF_ATTENTION_H_
