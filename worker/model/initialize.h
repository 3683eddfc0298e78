// The initial weights of a job: a function of its seed and of each element's
// index in its logical tensor, so every plan starts from the same numbers.
#ifndef TROUPE_WORKER_MODEL_INITIALIZE_H_
#define TROUPE_WORKER_MODEL_INITIALIZE_H_

#include <cstdint>

#include "ops/device.h"
#include "proto/plan.pb.h"
#include "proto/plan/slices.h"

namespace troupe {

// Writes all of a unit's flat buffer of weights: unit.flat_elements() f32, of a
// unit that is cut those that `place` has, gaps and padding zero. Whatever
// computes in bf16 gets them rounded by RoundParameters.
struct InitialWeights {
  uint64_t seed = 0;  // of the job
  MeshPlace place;
};
void InitializeParameters(Device& device, const Unit& unit,
                          const InitialWeights& options, void* weights);

// The unit's flat buffer of bf16 parameters: its f32 weights, each rounded to
// the nearest, as the optimizer rounds them.
struct RoundedParameters {
  void* weights = nullptr;     // f32
  void* parameters = nullptr;  // bf16, written
};
void RoundParameters(Device& device, const Unit& unit,
                     const RoundedParameters& buffers);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_INITIALIZE_H_
