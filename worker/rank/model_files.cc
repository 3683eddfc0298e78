#include "worker/rank/model_files.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/job_json.h"
#include "proto/plan/lora.h"
#include "proto/plan/model.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "storage/checkpoint/adapter_files.h"

namespace troupe {

JobSpec JobOf(const Manifest& manifest) {
  return ParseJobJson(manifest.job).value_or(JobSpec());
}

namespace {

// Those of the modules that predict further tokens, which a job may leave out.
std::set<std::string> ModuleParameters(const ModelSpec& model) {
  std::set<std::string> names;
  if (model.num_nextn_predict_layers() == 0) return names;
  const auto list = ModelUnits(model, {.sequences = 1, .sequence_length = 1});
  if (!list.ok()) return names;  // of another version: none is known
  const int modules = UnitCount(WithoutModules(model));
  for (size_t u = modules; u < list->units.size(); ++u) {
    for (const Parameter& parameter : list->units[u].parameters()) {
      names.insert(parameter.name());
    }
  }
  return names;
}

}  // namespace

absl::Status CheckSameModel(const Manifest& manifest, const JobSpec& saved,
                            const Plan& plan) {
  std::set<absl::string_view> names;
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      names.insert(parameter.name());
    }
  }
  const std::set<std::string> left_out = ModuleParameters(saved.model());
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (IsStateTensor(tensor.name)) continue;
    if (names.count(tensor.name) > 0 || left_out.count(tensor.name) > 0) {
      continue;
    }
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

namespace {

HuggingFaceParameter AsInFiles(const Parameter& parameter) {
  HuggingFaceParameter wanted = {
      .name = parameter.name(),
      .shape = WholeShape(parameter),
      .part = absl::nullopt,
      .each = parameter.each_in(),
      .copies = {parameter.also_in().begin(), parameter.also_in().end()}};
  if (!parameter.has_part_of()) return wanted;
  const Parameter::PartOf& part = parameter.part_of();
  wanted.part = PartOfTensor{.tensor = part.name(),
                             .parts = part.parts(),
                             .index = part.index(),
                             .rows = part.rows()};
  return wanted;
}

}  // namespace

HuggingFaceContents ContentsOf(const Plan& plan) {
  HuggingFaceContents contents;
  const ModelSpec& model = plan.job().model();
  if (MayHaveLayersBehind(model)) {
    contents.layers_behind =
        model.num_hidden_layers() + model.num_nextn_predict_layers();
  }
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      const bool of_model =
          parameter.has_load() ? parameter.load().of_model()  // else zeros
                               : !parameter.adapter();
      if (!of_model) continue;
      contents.parameters.push_back(AsInFiles(parameter));
    }
    for (const Unit::Tied& tied : unit.tied()) {
      contents.tied.push_back(tied.parameter());
    }
  }
  return contents;
}

absl::StatusOr<HuggingFaceWeights> OpenAdapterOf(const Plan& plan) {
  const LoraSpec& lora = plan.job().training().lora();
  const absl::StatusOr<AdapterConfig> config =
      ReadAdapterConfig(lora.adapter());
  if (!config.ok()) return Annotate(config.status(), kAdapterField);
  RETURN_IF_ERROR(
      CheckSameLora(lora, {.rank = config->rank,
                           .alpha = config->alpha,
                           .rank_stabilized = config->rank_stabilized}));
  std::vector<HuggingFaceParameter> adapters;
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.adapter()) adapters.push_back(AsInFiles(parameter));
    }
  }
  absl::StatusOr<HuggingFaceWeights> weights =
      OpenAdapterWeights(lora.adapter(), adapters);
  if (!weights.ok()) return Annotate(weights.status(), kAdapterField);
  return weights;
}

}  // namespace troupe
