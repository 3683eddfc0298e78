// A resolved Llama of any size, with the vocabulary and context of Llama 2, and
// a relative of that size.
#ifndef TROUPE_TESTS_PROTO_PLAN_LLAMA_SPEC_H_
#define TROUPE_TESTS_PROTO_PLAN_LLAMA_SPEC_H_

#include "proto/job.pb.h"

namespace troupe {

struct LlamaSize {
  int layers = 2;
  int hidden = 12;
  int heads = 2;
  int kv_heads = 1;
  int head_dim = 8;
  int intermediate = 20;
};

inline ModelSpec Llama(const LlamaSize& size) {
  ModelSpec model;
  model.set_architecture("llama");
  model.set_num_hidden_layers(size.layers);
  model.set_hidden_size(size.hidden);
  model.set_num_attention_heads(size.heads);
  model.set_num_key_value_heads(size.kv_heads);
  model.set_head_dim(size.head_dim);
  model.set_intermediate_size(size.intermediate);
  model.set_vocab_size(32000);
  model.set_max_position_embeddings(4096);
  model.set_rms_norm_eps(1e-5);
  model.set_rope_theta(10000);
  model.set_initializer_range(0.02);
  model.set_tie_word_embeddings(false);
  model.set_attention_bias(false);
  model.set_mlp_bias(false);
  return model;
}

// Without Llama's own fields.
inline ModelSpec LlamaRelative(const char* architecture,
                               const LlamaSize& size) {
  ModelSpec model = Llama(size);
  model.set_architecture(architecture);
  model.clear_attention_bias();
  model.clear_mlp_bias();
  return model;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_LLAMA_SPEC_H_
