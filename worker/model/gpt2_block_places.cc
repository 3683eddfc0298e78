#include "worker/model/gpt2_block_places.h"

namespace troupe {

Gpt2BlockPlaces::Gpt2BlockPlaces(const ModelSpec& model,
                                 const MicroBatchShape& shape) {
  const int64_t b = shape.sequences;
  const int64_t t = shape.sequence_length;
  const int64_t width = model.hidden_size();
  const int64_t intermediate = model.intermediate_size();
  activation = activation_layout.Add({b, t, width});

  mean_1 = stash_layout.Add({b * t});
  rstd_1 = stash_layout.Add({b * t});
  mean_2 = stash_layout.Add({b * t});
  rstd_2 = stash_layout.Add({b * t});
  logsumexp = stash_layout.Add({b, model.num_attention_heads(), t});
  norm_1 = stash_layout.Add({b, t, width});
  qkv = stash_layout.Add({b, t, 3 * width});
  attention = stash_layout.Add({b, t, width});
  residual = stash_layout.Add({b, t, width});
  norm_2 = stash_layout.Add({b, t, width});
  before_gelu = stash_layout.Add({b, t, intermediate});
  after_gelu = stash_layout.Add({b, t, intermediate});

  d_norm_1 = weight_stash_layout.Add({b, t, width});
  d_qkv = weight_stash_layout.Add({b, t, 3 * width});
  d_residual = weight_stash_layout.Add({b, t, width});
  d_norm_2 = weight_stash_layout.Add({b, t, width});
  d_before_gelu = weight_stash_layout.Add({b, t, intermediate});

  masked = workspace_layout.Add({b, t, width});
}

Gpt2DecodePlaces::Gpt2DecodePlaces(const ModelSpec& model, int64_t count) {
  const int64_t width = model.hidden_size();
  norm = layout.Add({1, count, width});
  qkv = layout.Add({1, count, 3 * width});
  attention = layout.Add({1, count, width});
  residual = layout.Add({1, count, width});
  after_gelu = layout.Add({1, count, model.intermediate_size()});
}

}  // namespace troupe
