#include "clients/hugging_face/open_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/config.h"
#include "proto/base/status.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "storage/checkpoint/check_hugging_face.h"

namespace troupe {
namespace {

// How the files have what units call otherwise.
void AddNames(const std::vector<Unit>& units, HuggingFaceWeights& weights) {
  for (const Unit& unit : units) {
    for (const Parameter& parameter : unit.parameters()) {
      if (!parameter.has_part_of()) continue;
      const Parameter::PartOf& part = parameter.part_of();
      weights.AddPart(parameter.name(), {.tensor = part.name(),
                                         .parts = part.parts(),
                                         .index = part.index(),
                                         .rows = part.rows()});
    }
    for (const Unit::Tied& tied : unit.tied()) {
      weights.AddTied(tied.parameter());
    }
  }
}

}  // namespace

absl::StatusOr<HuggingFaceModel> OpenHuggingFaceModel(
    const std::string& directory) {
  ASSIGN_OR_RETURN(ModelSpec model, ReadHuggingFaceConfig(directory));
  RETURN_IF_ERROR(
      Annotate(ResolveModel(model), absl::StrCat(directory, "/config.json")));
  ASSIGN_OR_RETURN(UnitList list,
                   ModelUnits(model, {.sequences = 1, .sequence_length = 1}));
  std::vector<SafetensorsTensor> parameters;
  for (const Unit& unit : list.units) {
    for (const Parameter& parameter : unit.parameters()) {
      parameters.push_back({.name = parameter.name(),
                            .dtype = StoredDType::kF32,
                            .shape = WholeShape(parameter)});
    }
  }
  ASSIGN_OR_RETURN(HuggingFaceWeights weights,
                   HuggingFaceWeights::Open(directory));
  AddNames(list.units, weights);
  RETURN_IF_ERROR(CheckHuggingFaceWeights(weights, parameters));
  return HuggingFaceModel{.model = std::move(model),
                          .units = std::move(list.units),
                          .parameters = std::move(parameters),
                          .weights = std::move(weights)};
}

}  // namespace troupe
