// The memory of a GPT-2 block: what lies where in the buffers that its passes
// share. proto/plan/model_gpt2 counts the same tensors.
#ifndef TROUPE_WORKER_MODEL_GPT2_BLOCK_PLACES_H_
#define TROUPE_WORKER_MODEL_GPT2_BLOCK_PLACES_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/plan/model.h"
#include "worker/model/tensor_place.h"

namespace troupe {

// Of a training or validation pass over a micro-batch [b, t].
struct Gpt2BlockPlaces {
  Gpt2BlockPlaces(const ModelSpec& model, const MicroBatchShape& shape);

  BufferLayout activation_layout;
  TensorPlace activation;  // [b, t, width]: input, output, their gradients

  BufferLayout stash_layout;
  TensorPlace mean_1;       // [b t]
  TensorPlace rstd_1;       // [b t]
  TensorPlace mean_2;       // [b t]
  TensorPlace rstd_2;       // [b t]
  TensorPlace logsumexp;    // [b, heads, t]
  TensorPlace norm_1;       // [b, t, width]
  TensorPlace qkv;          // [b, t, 3 width]
  TensorPlace attention;    // [b, t, width], before the output projection
  TensorPlace residual;     // [b, t, width], after the attention
  TensorPlace norm_2;       // [b, t, width]
  TensorPlace before_gelu;  // [b, t, intermediate]
  TensorPlace after_gelu;   // [b, t, intermediate]

  BufferLayout weight_stash_layout;
  TensorPlace d_norm_1;       // [b, t, width]
  TensorPlace d_qkv;          // [b, t, 3 width]
  TensorPlace d_residual;     // [b, t, width]
  TensorPlace d_norm_2;       // [b, t, width]
  TensorPlace d_before_gelu;  // [b, t, intermediate]

  BufferLayout workspace_layout;
  TensorPlace masked;  // [b, t, width]: a gradient under a dropout mask
};

// Of one call of Decode, for sequence_length tokens of one sequence, all in its
// workspace.
struct Gpt2DecodePlaces {
  Gpt2DecodePlaces(const ModelSpec& model, const MicroBatchShape& shape);

  BufferLayout layout;
  TensorPlace norm;        // [1, count, width]
  TensorPlace qkv;         // [1, count, 3 width]
  TensorPlace attention;   // [1, count, width]
  TensorPlace residual;    // [1, count, width]
  TensorPlace after_gelu;  // [1, count, intermediate]
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_GPT2_BLOCK_PLACES_H_
