// One unit with memory for all its buffers: what the tests of single units
// drive.
#ifndef TROUPE_TESTS_WORKER_MODEL_UNIT_HARNESS_H_
#define TROUPE_TESTS_WORKER_MODEL_UNIT_HARNESS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/cpu/device.h"
#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "tests/worker/model/numeric.h"
#include "worker/model/build_units.h"
#include "worker/model/initialize.h"

namespace troupe {

struct UnitHarness {
  // The index'th unit of the model; one before the first stands for its input.
  UnitHarness(const ModelSpec& model, int index,
              const BuildUnitsOptions& options)
      : device(NewCpuDevice({.threads = 1})),
        specs(*ModelUnits(model, options.shape)),
        spec(specs[index]),
        unit(std::move((*BuildUnits(model, specs, options))[index])),
        activation_bytes(specs[0].activation_bytes()),
        input(*device, activation_bytes),
        output(*device, activation_bytes),
        stash(*device, spec.stash_bytes()),
        d_output(*device, activation_bytes),
        d_input(*device, activation_bytes),
        weight_stash(*device, spec.weight_stash_bytes()),
        workspace(*device, spec.workspace_bytes()),
        parameters(*device, spec.flat_elements() * 4),
        gradients(*device, spec.flat_elements() * 4),
        tied_parameters(*device, specs[0].flat_elements() * 4),
        tied_gradients(*device, specs[0].flat_elements() * 4) {
    InitializeParameters(*device, spec, 1, parameters.get());
    InitializeParameters(*device, specs[0], 1, tied_parameters.get());
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
            .scalars = scalars};
  }
  void Forward(const MicroBatchContext& context) {
    unit->Forward(*device, context, Buffers());
  }

  std::unique_ptr<Device> device;
  const std::vector<Unit> specs;
  const Unit spec;
  const std::unique_ptr<ModelUnit> unit;
  const int64_t activation_bytes;
  DeviceMemory input, output, stash, d_output, d_input, weight_stash, workspace;
  DeviceMemory parameters, gradients, tied_parameters, tied_gradients;
  std::vector<int32_t> batch;
  double scalars[4] = {};
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_MODEL_UNIT_HARNESS_H_
