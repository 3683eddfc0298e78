// The memory of a Llama block: what lies where in the buffers that its passes
// share. proto/plan/model_llama counts the same tensors.
#ifndef TROUPE_WORKER_MODEL_LLAMA_BLOCK_PLACES_H_
#define TROUPE_WORKER_MODEL_LLAMA_BLOCK_PLACES_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/plan/micro_batch.h"
#include "worker/model/tensor_place.h"

namespace troupe {

// Widths of a model's attention.
inline int64_t LlamaQueryWidth(const ModelSpec& model) {
  return int64_t{model.num_attention_heads()} * model.head_dim();
}
inline int64_t LlamaKeyWidth(const ModelSpec& model) {  // and of values
  return int64_t{model.num_key_value_heads()} * model.head_dim();
}

// Of a training or validation pass over a micro-batch [b, t]; `queries` and
// `keys` are the widths above.
struct LlamaBlockPlaces {
  LlamaBlockPlaces(const ModelSpec& model, const MicroBatchShape& shape);

  BufferLayout activation_layout;
  TensorPlace activation;  // [b, t, width]: input, output, their gradients

  BufferLayout stash_layout;
  TensorPlace rstd_1;     // [b t]
  TensorPlace rstd_2;     // [b t]
  TensorPlace logsumexp;  // [b, heads, t]
  TensorPlace norm_1;     // [b, t, width]
  TensorPlace qkv;        // [b, t, queries + 2 keys], rotated
  TensorPlace attention;  // [b, t, queries], before the output projection
  TensorPlace residual;   // [b, t, width], after the attention
  TensorPlace norm_2;     // [b, t, width]
  TensorPlace gate_up;    // [b, t, 2 intermediate]
  TensorPlace gated;      // [b, t, intermediate]

  BufferLayout weight_stash_layout;
  TensorPlace d_norm_1;    // [b, t, width]
  TensorPlace d_qkv;       // [b, t, queries + 2 keys], before the rotation
  TensorPlace d_residual;  // [b, t, width]
  TensorPlace d_norm_2;    // [b, t, width]
  TensorPlace d_gate_up;   // [b, t, 2 intermediate]

  // One after the other, in the same memory.
  int64_t workspace_bytes = 0;
  TensorPlace d_gated;      // [b, t, intermediate]
  TensorPlace d_attention;  // [b, t, queries]
};

// Of one call of Decode, for sequence_length tokens of one sequence, all in its
// workspace.
struct LlamaDecodePlaces {
  LlamaDecodePlaces(const ModelSpec& model, const MicroBatchShape& shape);

  BufferLayout layout;
  TensorPlace norm;       // [1, count, width]
  TensorPlace qkv;        // [1, count, queries + 2 keys]
  TensorPlace attention;  // [1, count, queries]
  TensorPlace residual;   // [1, count, width]
  TensorPlace gate_up;    // [1, count, 2 intermediate]
  TensorPlace gated;      // [1, count, intermediate]
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_LLAMA_BLOCK_PLACES_H_
