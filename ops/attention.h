// Causal softmax attention by blocks with online softmax: FlashAttention (Dao
// et al., 2205.14135) with the loops of FlashAttention-2 (2307.08691). Scores
// exist only block by block; memory beyond the arguments is linear in the
// sequence length. The forward keeps one logsumexp for each query row; the
// backward recomputes the probabilities from it.
//
//   o[i] = sum_j dropout(softmax_j(scale * q[i] . k[j])) v[j],
//          over the keys j <= i + (kv_length - q_length)
//
// so that with equal lengths attention is plainly causal, and with a KV cache
// the last query sees all keys.
//
// Shapes: q, o are [batch, q_length, heads * head_dim]; k, v are [batch,
// kv_length, kv_heads * head_dim]; head h is columns [h * head_dim, ...) and
// reads kv head h / (heads / kv_heads). kv_length >= q_length. q, k, v, o and
// their gradients are all f32, all bf16 or all fp16, logsumexp is f32; sums are
// in f32, and each element stored is rounded once. In bf16 the factors of
// products are bf16 too: probabilities and the gradients of scores are rounded
// before they meet v, k, q. Every tensor may be strided in batch and length, so
// q, k, v may be column slices of one [batch, length, 3 * width] tensor, and so
// may their gradients.
#ifndef TROUPE_OPS_ATTENTION_H_
#define TROUPE_OPS_ATTENTION_H_

#include <cstdint>

#include "ops/tensor.h"
#include "proto/base/philox.h"

namespace troupe {

class Device;

// Dropout of the probabilities; only where q_length == kv_length. The mask's
// element for sample b, head h, query i, key j of this call is
//   (((first_sample + b) * total_heads + first_head + h) * T + i) * T + j
// with T the length, and is kept as ops/dropout.h says.
struct AttentionDropout {
  float probability = 0.0f;
  PhiloxStream stream;
  int64_t first_sample = 0;  // global index of sample 0
  int64_t first_head = 0;    // global index of head 0 (tensor parallelism)
  int64_t total_heads = 0;   // of the whole model; 0: as many as here
};

struct AttentionArgs {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;          // written
  Tensor logsumexp;  // optional, [batch, heads, q_length] dense, written
  int heads = 0;
  int kv_heads = 0;    // divides heads
  float scale = 1.0f;  // > 0, usually 1 / sqrt(head_dim)
  AttentionDropout dropout;
};

void Attention(Device& device, const AttentionArgs& args);

// The gradients overlap none of the other tensors.
struct AttentionBackwardArgs {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;          // of the forward
  Tensor logsumexp;  // of the forward
  Tensor d_o;        // gradient of o
  Tensor dq;         // written
  Tensor dk;         // written
  Tensor dv;         // written
  int heads = 0;
  int kv_heads = 0;
  float scale = 1.0f;
  AttentionDropout dropout;
};

void AttentionBackward(Device& device, const AttentionBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_ATTENTION_H_
