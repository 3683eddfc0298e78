#include "worker/rank/model_files.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/plan/job_json.h"
#include "proto/plan/model.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"

namespace troupe {

JobSpec JobOf(const Manifest& manifest) {
  return ParseJobJson(manifest.job).value_or(JobSpec());
}

absl::Status CheckSameModel(const Manifest& manifest, const JobSpec& saved,
                            const Plan& plan) {
  std::set<absl::string_view> names;
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      names.insert(parameter.name());
    }
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (IsStateTensor(tensor.name)) continue;
    if (names.count(tensor.name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("it is of another model: it has ", tensor.name,
                     ", for which this job's model has no place"));
  }
  const int there = saved.model().num_attention_heads();
  const int here = plan.job().model().num_attention_heads();
  // 0: nothing to compare with.
  if (there == 0 || there == here) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model.num_attention_heads is ", there, " there, but ", here,
                   " in this job"));
}

HuggingFaceContents ContentsOf(const Plan& plan) {
  HuggingFaceContents contents;
  const ModelSpec& model = plan.job().model();
  if (MayHaveLayersBehind(model)) {
    contents.layers_behind = model.num_hidden_layers();
  }
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      const bool of_model =
          parameter.has_load() ? parameter.load().of_model()  // else zeros
                               : !parameter.adapter();
      if (!of_model) continue;
      HuggingFaceParameter& wanted = contents.parameters.emplace_back();
      wanted.name = parameter.name();
      wanted.shape = WholeShape(parameter);
      wanted.each = parameter.each_in();
      if (!parameter.has_part_of()) continue;
      const Parameter::PartOf& part = parameter.part_of();
      wanted.part = PartOfTensor{.tensor = part.name(),
                                 .parts = part.parts(),
                                 .index = part.index(),
                                 .rows = part.rows()};
    }
    for (const Unit::Tied& tied : unit.tied()) {
      contents.tied.push_back(tied.parameter());
    }
  }
  return contents;
}

}  // namespace troupe
