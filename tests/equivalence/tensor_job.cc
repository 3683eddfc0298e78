#include "tests/equivalence/tensor_job.h"

#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/small_job.h"

namespace troupe {

JobSpec TensorJob(const TensorModel& options) {
  JobSpec job = SmallJobOf(options.architecture);
  ModelSpec& model = *job.mutable_model();
  model.set_hidden_size(48);
  model.set_num_attention_heads(24);
  model.set_intermediate_size(72);
  if (model.has_moe_intermediate_size()) model.set_moe_intermediate_size(24);
  if (model.has_shared_expert_intermediate_size()) {
    model.set_shared_expert_intermediate_size(48);
  }
  model.set_tie_word_embeddings(options.tied);
  if (options.architecture == "olmoe") {
    // What is normed over all heads is not shared by ranks.
    model.clear_num_key_value_heads();
  }
  if (model.has_num_key_value_heads()) {
    model.set_num_key_value_heads(options.key_value_heads);
    model.set_head_dim(4);
  }
  if (options.architecture == "gpt_neox") {
    model.set_hidden_size(96);
    model.set_partial_rotary_factor(0.5);
  }
  if (model.has_sliding_window()) {
    model.set_sliding_window(options.positions);
  }
  model.set_max_position_embeddings(options.positions);
  TrainingSpec& training = *job.mutable_training();
  training.set_sequence_length(options.positions);
  training.set_micro_batch_size(options.micro_batch);
  training.set_dropout(options.dropout);
  // Sums within units are taken in another order, so that every value differs
  // by a rounding. AdamW would make steps of gradients that are nothing but
  // that.
  job.mutable_optimizer()->set_name("adamw");
  job.mutable_optimizer()->set_lr(4e-3);
  job.mutable_optimizer()->set_eps(1e-3);
  return job;
}

JobSpec CutJob(const JobSpec& job, const JobCut& cut) {
  JobSpec result = CutJob(job, PipelineCut{.schedule = cut.schedule,
                                           .pipeline = cut.pipeline,
                                           .data = cut.data});
  ParallelismSpec& parallelism = *result.mutable_parallelism();
  parallelism.set_tensor(cut.tensor);
  parallelism.set_sequence_parallel(cut.sequence);
  if (cut.tensor_method != "1d") {
    parallelism.set_tensor_method(cut.tensor_method);
  }
  parallelism.set_context(cut.context);
  if (cut.context > 1) parallelism.set_context_method(cut.context_method);
  if (cut.ulysses_size > 0) parallelism.set_ulysses_size(cut.ulysses_size);
  if (cut.expert > 1) parallelism.set_expert(cut.expert);
  parallelism.set_zero(cut.zero);
  if (cut.zero_size > 0) parallelism.set_zero_size(cut.zero_size);
  for (const int weight : cut.zero_weights) {
    parallelism.add_zero_weights(weight);
  }
  if (cut.zero == 3) parallelism.set_reshard_after_forward(cut.reshard);
  if (cut.unsharded_bytes >= 0) {
    result.mutable_memory()->set_unsharded_bytes(cut.unsharded_bytes);
  }
  return result;
}

}  // namespace troupe
