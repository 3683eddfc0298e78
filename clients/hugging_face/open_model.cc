#include "clients/hugging_face/open_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/config.h"
#include "proto/base/status.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

HuggingFaceContents ContentsOf(const ModelSpec& model,
                               const std::vector<Unit>& units) {
  HuggingFaceContents contents;
  if (MayHaveLayersBehind(model)) {
    contents.layers_behind =
        model.num_hidden_layers() + model.num_nextn_predict_layers();
  }
  for (const Unit& unit : units) {
    for (const Parameter& parameter : unit.parameters()) {
      HuggingFaceParameter& wanted = contents.parameters.emplace_back();
      wanted.name = parameter.name();
      wanted.shape = WholeShape(parameter);
      wanted.each = parameter.each_in();
      wanted.copies.assign(parameter.also_in().begin(),
                           parameter.also_in().end());
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

// config.json counts modules also where the files leave them out, as those that
// transformers writes do.
absl::Status TakeModulesThatAreThere(const std::string& directory,
                                     ModelSpec& model) {
  if (model.num_nextn_predict_layers() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const HuggingFaceWeights weights,
                   HuggingFaceWeights::Open(directory));
  const std::string first = absl::StrCat(
      "model.layers.", model.num_hidden_layers(), ".eh_proj.weight");
  if (weights.Find(first) == nullptr) {
    model.set_num_nextn_predict_layers(0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HuggingFaceModel> OpenHuggingFaceModel(
    const std::string& directory, HuggingFaceCheck check) {
  ASSIGN_OR_RETURN(ModelSpec model, ReadHuggingFaceConfig(directory));
  RETURN_IF_ERROR(TakeModulesThatAreThere(directory, model));
  RETURN_IF_ERROR(
      Annotate(ResolveModel(model), absl::StrCat(directory, "/config.json")));
  ASSIGN_OR_RETURN(UnitList list,
                   ModelUnits(model, {.sequences = 1, .sequence_length = 1}));
  const HuggingFaceContents contents = ContentsOf(model, list.units);
  ASSIGN_OR_RETURN(HuggingFaceWeights weights,
                   OpenHuggingFaceWeights(directory, contents, check));
  std::vector<SafetensorsTensor> parameters;
  for (const HuggingFaceParameter& parameter : contents.parameters) {
    parameters.push_back({.name = parameter.name,
                          .dtype = StoredDType::kF32,
                          .shape = parameter.shape});
  }
  std::vector<std::string> left_out = TensorsLeftOut(weights, contents);
  return HuggingFaceModel{.model = std::move(model),
                          .units = std::move(list.units),
                          .parameters = std::move(parameters),
                          .weights = std::move(weights),
                          .left_out = std::move(left_out)};
}

}  // namespace troupe
