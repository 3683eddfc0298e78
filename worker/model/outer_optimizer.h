// The outer optimizer of islands (docs/islands.md): what it reads and changes
// of a unit, or of the slices of one that a rank holds, in pieces whose weights
// and outer states each lie in one run of memory.
//
//   change = outer weights - weights               of one island
//   outer weights, momentum: SGD with Nesterov momentum on the mean change
//   weights = mixing x weights + (1 - mixing) x outer weights
#ifndef TROUPE_WORKER_MODEL_OUTER_OPTIMIZER_H_
#define TROUPE_WORKER_MODEL_OUTER_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/job.pb.h"
#include "proto/plan/layout.h"
#include "proto/unit.pb.h"

namespace troupe {

// Elements [first, first + count) of what a rank exchanges of the unit.
struct OuterPiece {
  int64_t first = 0;
  int64_t count = 0;
  float* weights = nullptr;
  float* outer_weights = nullptr;
  float* momentum = nullptr;   // null: the outer optimizer has none
  char* parameters = nullptr;  // null: the model computes with `weights`
};

// A range of a unit's flat buffers that a rank holds, as a STEP has them.
struct OuterBuffers {
  char* weights = nullptr;  // f32
  char* parameters = nullptr;
  DType parameters_type = DType::kF32;
  char* state = nullptr;  // OPTIMIZER_STATE of `holds`
  Range holds;
};
// Those of the range, which begins at element `first` of what is exchanged.
std::vector<OuterPiece> OuterPiecesOf(const OptimizerSpec& optimizer,
                                      const Unit& unit,
                                      const OuterBuffers& buffers,
                                      int64_t first);

// Writes the change of elements `window` of what is exchanged.
void TakeChange(Device& device, const std::vector<OuterPiece>& pieces,
                const Range& window, float* change);

// `change`, of the elements `window`, times `scale` is the mean over islands.
struct OuterChange {
  Range window;
  float* change = nullptr;
  double scale = 1;
  double mixing = 0;  // the part of its own weights that the island keeps
};
void StepOuter(Device& device, const std::vector<OuterPiece>& pieces,
               const OuterSpec& outer, DType parameters_type,
               const OuterChange& change);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_OUTER_OPTIMIZER_H_
