// The initial weights of a job: a function of its seed and of each element's
// index in its logical tensor, so every plan starts from the same numbers.
#ifndef TROUPE_WORKER_MODEL_INITIALIZE_H_
#define TROUPE_WORKER_MODEL_INITIALIZE_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"
#include "proto/plan/slices.h"

namespace troupe {

// Writes a unit's flat buffer of weights: unit.flat_elements() f32, or the
// range of them that the rank holds; of a unit that is cut those that `place`
// has, gaps and padding zero. Whatever computes in bf16 gets them rounded by
// RoundParameters.
struct InitialWeights {
  uint64_t seed = 0;  // of the job
  MeshPlace place;
  absl::optional<Range> holds;  // nothing: all
};
void InitializeParameters(Device& device, const Unit& unit,
                          const InitialWeights& options, void* weights);

// The same of one parameter alone: f32 elements [begin, begin + count) of the
// whole tensor, at `weights`.
void DrawElements(Device& device, const Parameter& parameter, uint64_t seed,
                  const Range& elements, float* weights);

// Parameters of a narrower type: f32 weights, each rounded to the nearest, as
// the optimizer rounds them.
struct RoundedParameters {
  void* weights = nullptr;     // f32
  void* parameters = nullptr;  // written
  DType type = DType::kBF16;   // theirs
};
void RoundParameters(Device& device, int64_t elements,
                     const RoundedParameters& buffers);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_INITIALIZE_H_
