#include "worker/model/llama_block_places.h"

#include <algorithm>

namespace troupe {

LlamaBlockPlaces::LlamaBlockPlaces(const ModelSpec& model,
                                   const MicroBatchShape& shape) {
  const int64_t b = shape.sequences;
  const int64_t t = shape.sequence_length;
  const int64_t width = model.hidden_size();
  const int64_t queries = LlamaQueryWidth(model);
  const int64_t qkv_width = queries + 2 * LlamaKeyWidth(model);
  const int64_t intermediate = model.intermediate_size();
  const DType dtype = ComputeDType(shape.dtype);
  activation = activation_layout.Add({b, t, width}, dtype);

  rstd_1 = stash_layout.Add({b * t});
  rstd_2 = stash_layout.Add({b * t});
  logsumexp = stash_layout.Add({b, model.num_attention_heads(), t});
  norm_1 = stash_layout.Add({b, t, width}, dtype);
  qkv = stash_layout.Add({b, t, qkv_width}, dtype);
  attention = stash_layout.Add({b, t, queries}, dtype);
  residual = stash_layout.Add({b, t, width}, dtype);
  norm_2 = stash_layout.Add({b, t, width}, dtype);
  gate_up = stash_layout.Add({b, t, 2 * intermediate}, dtype);
  gated = stash_layout.Add({b, t, intermediate}, dtype);

  d_norm_1 = weight_stash_layout.Add({b, t, width}, dtype);
  d_qkv = weight_stash_layout.Add({b, t, qkv_width}, dtype);
  d_residual = weight_stash_layout.Add({b, t, width}, dtype);
  d_norm_2 = weight_stash_layout.Add({b, t, width}, dtype);
  d_gate_up = weight_stash_layout.Add({b, t, 2 * intermediate}, dtype);

  BufferLayout of_mlp;
  BufferLayout of_attention;
  d_gated = of_mlp.Add({b, t, intermediate}, dtype);
  d_attention = of_attention.Add({b, t, queries}, dtype);
  workspace_bytes = std::max(of_mlp.bytes(), of_attention.bytes());
}

LlamaDecodePlaces::LlamaDecodePlaces(const ModelSpec& model,
                                     const MicroBatchShape& shape) {
  const int64_t count = shape.sequence_length;
  const int64_t width = model.hidden_size();
  const int64_t queries = LlamaQueryWidth(model);
  const int64_t intermediate = model.intermediate_size();
  const DType dtype = ComputeDType(shape.dtype);
  norm = layout.Add({1, count, width}, dtype);
  qkv = layout.Add({1, count, queries + 2 * LlamaKeyWidth(model)}, dtype);
  attention = layout.Add({1, count, queries}, dtype);
  residual = layout.Add({1, count, width}, dtype);
  gate_up = layout.Add({1, count, 2 * intermediate}, dtype);
  gated = layout.Add({1, count, intermediate}, dtype);
}

}  // namespace troupe
