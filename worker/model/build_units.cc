#include "worker/model/build_units.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/check_batch.h"
#include "proto/plan/check_units.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/precision.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/tensor_spec.h"
#include "worker/model/op_unit.h"
#include "worker/model/synthetic_unit.h"

namespace troupe {
namespace {

class Builder {
 public:
  Builder(const UnitList& units, const BuildUnitsOptions& options)
      : units_(units), options_(options) {}

  absl::StatusOr<std::unique_ptr<ModelUnit>> Build(int index) {
    const Unit& unit = units_.units[index];
    if (unit.kind() == Unit::SYNTHETIC) {
      return NewSyntheticUnit(
          {.unit = unit,
           .input_bytes = InputBytes(unit),
           .tokens = options_.shape.sequences * options_.shape.sequence_length,
           .counts = CountsOf(index)});
    }
    return NewOpUnit({.table = units_.tables[unit.table()],
                      .places = Places(unit.table()),
                      .unit = unit,
                      .units = units_.units,
                      .seed = options_.seed,
                      .place = options_.place,
                      .sums = &options_.sums,
                      .index = index,
                      .batch_offsets = BatchOffsets(
                          units_.batch, units_.tables[unit.table()])});
  }

 private:
  // Of a synthetic unit, whose sources are synthetic too.
  int64_t InputBytes(const Unit& unit) const {
    if (unit.inputs().empty()) return 0;
    return units_.units[unit.inputs(0).unit()].activation_bytes();
  }

  // What a unit without ops adds to.
  std::vector<SumPlace> CountsOf(int index) const {
    std::vector<SumPlace> counts;
    for (const Unit::Addend& addend : units_.units[index].addends()) {
      const auto place =
          FindSum(options_.sums, addend.sum(),
                  addend.own() ? absl::optional<int>(index) : absl::nullopt);
      CHECK(place.has_value()) << "the plan has no sum " << addend.sum();
      counts.push_back(*place);
    }
    return counts;
  }

  // Many units have the same.
  const UnitPlaces& Places(int table) {
    const auto found = places_.find(table);
    if (found != places_.end()) return found->second;
    return places_[table] = PlaceUnit(units_.tables[table], UnitUse::kTraining);
  }

  const UnitList& units_;
  const BuildUnitsOptions& options_;
  std::map<int, UnitPlaces> places_;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const UnitList& units, const BuildUnitsOptions& options) {
  Builder builder(units, options);
  std::vector<std::unique_ptr<ModelUnit>> built;
  for (int i = 0; i < static_cast<int>(units.units.size()); ++i) {
    absl::StatusOr<std::unique_ptr<ModelUnit>> unit = builder.Build(i);
    RETURN_IF_ERROR(Annotate(unit.status(), absl::StrCat("unit ", i)));
    built.push_back(std::move(*unit));
  }
  return built;
}

absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const Plan& plan, int rank) {
  for (const auto check : {CheckUnits, CheckBatch}) {
    RETURN_IF_ERROR(
        Annotate(check(plan), "scheduler and worker must be of one build"));
  }
  const TrainingSpec& training = plan.job().training();
  UnitList units;
  units.tables = {plan.tables().begin(), plan.tables().end()};
  units.units = {plan.units().begin(), plan.units().end()};
  units.batch = plan.batch();
  return BuildUnits(units,
                    {.shape = {.sequences = MicroBatchSequences(plan),
                               .sequence_length = training.sequence_length(),
                               .dtype = ComputeType(training),
                               .dropout = training.dropout()},
                     .seed = training.seed(),
                     .place = {.mesh = &plan.mesh(), .rank = rank},
                     .sums = plan.sums()});
}

}  // namespace troupe
