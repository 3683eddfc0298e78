#include "worker/model/gpt2_block_places.h"

namespace troupe {

Gpt2BlockPlaces::Gpt2BlockPlaces(const ModelSpec& model,
                                 const MicroBatchShape& shape) {
  const int64_t b = shape.sequences;
  const int64_t t = shape.sequence_length;
  const int64_t width = model.hidden_size();
  const int64_t intermediate = model.intermediate_size();
  const DType dtype = ComputeDType(shape.dtype);
  activation = activation_layout.Add({b, t, width}, dtype);

  mean_1 = stash_layout.Add({b * t});
  rstd_1 = stash_layout.Add({b * t});
  mean_2 = stash_layout.Add({b * t});
  rstd_2 = stash_layout.Add({b * t});
  logsumexp = stash_layout.Add({b, model.num_attention_heads(), t});
  norm_1 = stash_layout.Add({b, t, width}, dtype);
  qkv = stash_layout.Add({b, t, 3 * width}, dtype);
  attention = stash_layout.Add({b, t, width}, dtype);
  residual = stash_layout.Add({b, t, width}, dtype);
  norm_2 = stash_layout.Add({b, t, width}, dtype);
  before_gelu = stash_layout.Add({b, t, intermediate}, dtype);
  after_gelu = stash_layout.Add({b, t, intermediate}, dtype);

  d_norm_1 = weight_stash_layout.Add({b, t, width}, dtype);
  d_qkv = weight_stash_layout.Add({b, t, 3 * width}, dtype);
  d_residual = weight_stash_layout.Add({b, t, width}, dtype);
  d_norm_2 = weight_stash_layout.Add({b, t, width}, dtype);
  d_before_gelu = weight_stash_layout.Add({b, t, intermediate}, dtype);

  masked = workspace_layout.Add({b, t, width}, dtype);
}

Gpt2DecodePlaces::Gpt2DecodePlaces(const ModelSpec& model,
                                   const MicroBatchShape& shape) {
  const int64_t count = shape.sequence_length;
  const DType dtype = ComputeDType(shape.dtype);
  const int64_t width = model.hidden_size();
  norm = layout.Add({1, count, width}, dtype);
  qkv = layout.Add({1, count, 3 * width}, dtype);
  attention = layout.Add({1, count, width}, dtype);
  residual = layout.Add({1, count, width}, dtype);
  after_gelu = layout.Add({1, count, model.intermediate_size()}, dtype);
}

}  // namespace troupe
