// One unit with memory for all its buffers: what the tests of single units
// drive.
#ifndef TROUPE_TESTS_WORKER_MODEL_UNIT_HARNESS_H_
#define TROUPE_TESTS_WORKER_MODEL_UNIT_HARNESS_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "proto/plan/tensor_spec.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/unit_sums.h"
#include "worker/model/build_units.h"
#include "worker/model/initialize.h"

namespace troupe {

struct UnitHarness {
  // The index'th of the units, which compute in f32.
  UnitHarness(UnitList listed, int index, uint64_t seed = 0)
      : device(NewCpuDevice({.threads = 1})),
        units(std::move(listed)),
        spec(units.units[index]),
        unit(Build(units, index, seed)),
        input(*device, BytesAt(TensorSpec::INPUT)),
        output(*device, BytesAt(TensorSpec::OUTPUT)),
        stash(*device, spec.stash_bytes()),
        d_output(*device, BytesAt(TensorSpec::OUTPUT)),
        d_input(*device, BytesAt(TensorSpec::INPUT)),
        weight_stash(*device, spec.weight_stash_bytes()),
        workspace(*device, spec.workspace_bytes()),
        parameters(*device, spec.flat_elements() * 4),
        gradients(*device, spec.flat_elements() * 4),
        tied_parameters(*device, units.units[0].flat_elements() * 4),
        tied_gradients(*device, units.units[0].flat_elements() * 4) {
    InitializeParameters(*device, spec, {.seed = 1}, parameters.get());
    InitializeParameters(*device, units.units[0], {.seed = 1},
                         tied_parameters.get());
    gradients.Zero();
    tied_gradients.Zero();
    FillRandom(input.span(), 2);
    FillRandom(d_output.span(), 3);
  }

  UnitBuffers Buffers() {
    return {.batch = batch.data(),
            .input = input.get(),
            .output = output.get(),
            .stash = stash.get(),
            .output_gradient = d_output.get(),
            .input_gradient = d_input.get(),
            .weight_stash = weight_stash.get(),
            .workspace = workspace.get(),
            .parameters = parameters.get(),
            .tied_parameters = tied_parameters.get(),
            .parameter_gradients = gradients.get(),
            .tied_parameter_gradients = tied_gradients.get(),
            .scalars = scalars.data()};
  }
  void Forward(const MicroBatchContext& context) {
    unit->Forward(*device, context, Buffers());
  }
  void Backward(const MicroBatchContext& context) {
    if (input.get() != nullptr) {
      unit->BackwardInput(*device, context, Buffers());
    }
    unit->BackwardWeight(*device, context, Buffers());
  }

  const UnitTable& table() const { return units.tables[spec.table()]; }
  // Of the tensor that lies there; 0 where none does.
  int64_t BytesAt(TensorSpec::Home home) const {
    for (const TensorSpec& tensor : table().tensors()) {
      if (tensor.home() == home) return BytesOf(tensor);
    }
    return 0;
  }

  std::unique_ptr<Device> device;
  const UnitList units;
  const Unit spec;
  const std::unique_ptr<ModelUnit> unit;
  DeviceMemory input, output, stash, d_output, d_input, weight_stash, workspace;
  DeviceMemory parameters, gradients, tied_parameters, tied_gradients;
  std::vector<int32_t> batch;  // tokens, then targets
  std::vector<double> scalars = std::vector<double>(SumElements(SumsOf(units)));

 private:
  static std::unique_ptr<ModelUnit> Build(const UnitList& units, int index,
                                          uint64_t seed) {
    auto built = BuildUnits(units, {.seed = seed, .sums = SumsOf(units)});
    CHECK_OK(built.status());
    return std::move((*built)[index]);
  }
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_MODEL_UNIT_HARNESS_H_
