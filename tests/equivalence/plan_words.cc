#include "tests/equivalence/plan_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

std::string ListText(absl::string_view name,
                     const google::protobuf::RepeatedField<int>& units) {
  if (units.empty()) return "";
  return absl::StrCat(", ", name, " ", absl::StrJoin(units, "+"));
}

std::string GroupsText(const OptimizerSpec& optimizer) {
  std::string text;
  for (const OptimizerGroup& group : optimizer.groups()) {
    absl::StrAppend(&text, ", ", group.has_name() ? group.name() : "adamw",
                    " for ", absl::StrJoin(group.match(), " "), " at ",
                    group.lr_scale());
    if (group.momentum() > 0) absl::StrAppend(&text, " with momentum");
  }
  return text;
}

std::string LoraText(const TrainingSpec& training) {
  if (!training.has_lora()) return "";
  const LoraSpec& lora = training.lora();
  return absl::StrCat(", adapters of ", absl::StrJoin(lora.modules(), " "),
                      " of rank ", lora.rank(),
                      lora.dropout() > 0 ? " with dropout" : "");
}

}  // namespace

std::string CutText(const JobSpec& cut) {
  const ParallelismSpec& p = cut.parallelism();
  const MemorySpec& m = cut.memory();
  std::string text = absl::StrCat("tensor ", p.tensor());
  if (p.has_tensor_method()) absl::StrAppend(&text, " ", p.tensor_method());
  if (p.sequence_parallel()) absl::StrAppend(&text, " sequence");
  if (p.batch() > 1) absl::StrAppend(&text, ", batch ", p.batch());
  for (const StrategySpec& strategy : p.strategies()) {
    absl::StrAppend(
        &text, ", ",
        strategy.has_stage() ? absl::StrCat("stage ", strategy.stage())
                             : absl::StrJoin(strategy.units(), "+"),
        strategy.has_batch() ? absl::StrCat(" by batch ", strategy.batch())
                             : absl::StrCat(" by tensor ", strategy.tensor()));
  }
  if (p.context() > 1) {
    absl::StrAppend(&text, ", ", p.context_method(), " ", p.context());
  }
  absl::StrAppend(&text, ", data ", p.data());
  if (p.servers() > 0) absl::StrAppend(&text, ", servers ", p.servers());
  if (p.expert() > 1) absl::StrAppend(&text, ", expert ", p.expert());
  if (p.has_expert_tensor()) absl::StrAppend(&text, " whole");
  if (p.has_expert_slack()) absl::StrAppend(&text, " in ", p.expert_slack());
  absl::StrAppend(&text, ", zero ", p.zero());
  if (p.has_zero_size()) absl::StrAppend(&text, " of ", p.zero_size());
  absl::StrAppend(&text, ListText("by", p.zero_weights()));
  const bool in_slices = p.zero() == 3 || p.has_tensor_method();
  if (in_slices && !p.reshard_after_forward()) {
    absl::StrAppend(&text, " kept");
  }
  if (m.has_unsharded_bytes()) {
    absl::StrAppend(&text, " in ", m.unsharded_bytes());
  }
  absl::StrAppend(&text, ", ", p.pipeline_schedule(), " ", p.pipeline());
  if (p.has_virtual_stages()) absl::StrAppend(&text, "x", p.virtual_stages());
  absl::StrAppend(&text, ListText("stages", p.stages()), ", micro-batch ",
                  cut.training().micro_batch_size(),
                  ListText("split", p.micro_batches()));
  const RecomputeSpec& recompute = m.recompute();
  if (recompute.has_mode()) {
    absl::StrAppend(&text, ", recompute ", recompute.mode());
  }
  absl::StrAppend(&text, ListText("recompute", recompute.units()),
                  ListText("selective", recompute.selective_units()));
  absl::StrAppend(&text, ", tiers ", m.optimizer(), "/", m.parameters(), "/",
                  m.gradients(), "/", m.activations());
  if (m.has_chunk_megabytes()) {
    absl::StrAppend(&text, ", chunks ", m.chunk_megabytes(), " in ",
                    m.device_bytes());
  }
  if (cut.checkpoint().background()) absl::StrAppend(&text, ", background");
  return text;
}

std::string PrecisionText(const TrainingSpec& training) {
  const ElementType type = ComputeType(training);
  const bool all = type != F32 && GradientType(training) == type;
  return absl::StrCat(PrecisionName(type), all ? ", gradients too" : "");
}

std::string TrainingText(const JobSpec& job) {
  const TrainingSpec& training = job.training();
  return absl::StrCat(
      PrecisionText(training), ", ",
      IsGraph(job.model()) ? "skip" : job.model().architecture(),
      job.model().num_nextn_predict_layers() > 0
          ? absl::StrCat(" with ", job.model().num_nextn_predict_layers(),
                         " modules")
          : "",
      job.model().tie_word_embeddings() ? ", tied" : "",
      job.model().has_num_key_value_heads()
          ? absl::StrCat(", ", job.model().num_key_value_heads(), " kv heads")
          : "",
      training.dropout() > 0 ? ", dropout" : "", ", clipping ",
      training.gradient_clipping(), ", batch ", training.global_batch_size(),
      training.validate_every() > 0 ? ", validated" : "", LoraText(training),
      training.freeze().empty()
          ? ""
          : absl::StrCat(", frozen ", absl::StrJoin(training.freeze(), " ")),
      GroupsText(job.optimizer()));
}

}  // namespace troupe
