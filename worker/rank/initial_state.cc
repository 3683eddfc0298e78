#include "worker/rank/initial_state.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/checkpoint/tensor_reader.h"
#include "worker/model/initialize.h"

namespace troupe {
namespace {

// Zeroes a resident buffer of a unit where this rank has it.
void ZeroResident(RankState& state, Buffer::Kind kind, int unit) {
  const Buffer* buffer = FindResident(state.rank_plan(), kind, unit);
  if (buffer == nullptr || buffer->bytes() == 0) return;
  state.device.Zero(state.memory.At(*buffer), buffer->bytes());
}

absl::Status ReadTensor(const TensorReader& checkpoint,
                        const StateTensor& tensor, RankState& state) {
  const ManifestTensor* stored = checkpoint.Find(tensor.name);
  if (stored == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has no tensor ", tensor.name,
                     "; was it written with another optimizer or model?"));
  }
  if (stored->shape != tensor.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        tensor.name, " is [", absl::StrJoin(stored->shape, ", "),
        "] there, but [", absl::StrJoin(tensor.shape, ", "), "] in this job"));
  }
  std::vector<float> host(tensor.elements);
  RETURN_IF_ERROR(checkpoint.ReadRange(tensor.name, StoredDType::kF32,
                                       {.begin = 0, .count = tensor.elements},
                                       host.data()));
  state.device.CopyFromHost(tensor.data, host.data(),
                            tensor.elements * sizeof(float));
  return state.device.Synchronize();
}

// Lets the model compute with the weights, where it does not with themselves.
void RoundWeights(RankState& state, int unit) {
  const UnitMemory memory = state.MemoryOfUnit(unit);
  if (memory.rounded_parameters == nullptr) return;
  RoundParameters(
      state.device, state.plan->units(unit),
      {.weights = memory.parameters, .parameters = memory.rounded_parameters});
}

}  // namespace

void InitializeFromSeed(RankState& state) {
  for (const int unit : state.HeldUnits()) {
    InitializeParameters(state.device, state.plan->units(unit),
                         state.plan->job().training().seed(),
                         state.MemoryOfUnit(unit).parameters);
    RoundWeights(state, unit);
    ZeroResident(state, Buffer::OPTIMIZER_STATE, unit);
    ZeroResident(state, Buffer::PARAMETER_GRADIENTS, unit);
  }
}

absl::StatusOr<TrainingPosition> RestoreFromCheckpoint(const std::string& path,
                                                       RankState& state) {
  // Alignment gaps and what the checkpoint lacks by design start as from seed.
  InitializeFromSeed(state);
  const std::string context = absl::StrCat("checkpoint ", path);
  absl::StatusOr<std::unique_ptr<TensorReader>> checkpoint =
      TensorReader::Open(path);
  if (!checkpoint.ok()) return Annotate(checkpoint.status(), context);
  const Manifest& manifest = (*checkpoint)->manifest();
  const int64_t steps = state.plan->job().training().steps();
  if (manifest.step > steps) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.steps: ", steps, ", but ", context,
                     " is of step ", manifest.step));
  }
  for (const int unit : state.HeldUnits()) {
    for (const StateTensor& tensor :
         UnitStateTensors(state.plan->job().optimizer(),
                          state.plan->units(unit), state.MemoryOfUnit(unit))) {
      RETURN_IF_ERROR(
          Annotate(ReadTensor(**checkpoint, tensor, state), context));
    }
    RoundWeights(state, unit);
  }
  return TrainingPosition{
      .step = manifest.step,
      .samples_consumed = static_cast<int64_t>(manifest.samples_consumed)};
}

}  // namespace troupe
