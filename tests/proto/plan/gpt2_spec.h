// A resolved GPT-2 of any size, with OpenAI's vocabulary and context.
#ifndef TROUPE_TESTS_PROTO_PLAN_GPT2_SPEC_H_
#define TROUPE_TESTS_PROTO_PLAN_GPT2_SPEC_H_

#include "proto/job.pb.h"

namespace troupe {

inline ModelSpec Gpt2(int layers, int hidden, int heads) {
  ModelSpec model;
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(layers);
  model.set_hidden_size(hidden);
  model.set_num_attention_heads(heads);
  model.set_vocab_size(50257);
  model.set_max_position_embeddings(1024);
  model.set_intermediate_size(4 * hidden);
  model.set_layer_norm_epsilon(1e-5);
  model.set_initializer_range(0.02);
  model.set_tie_word_embeddings(true);
  return model;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_GPT2_SPEC_H_
