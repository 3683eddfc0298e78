// Where everything lies that a unit computes with: values, and the gradients of
// the backward passes, each in one of the unit's buffers. Derived from its ops
// alone; the scheduler takes the buffers' sizes from here, the worker's layers
// the addresses.
//
//   STASH         values that a backward pass reads again
//   WEIGHT_STASH  gradients that BACKWARD_WEIGHT reads
//   SEGMENT_VALUES, SEGMENT_GRADIENTS
//                 what is in use while ranks exchange something; of gradients
//                 also those that ranks sum and BACKWARD_WEIGHT reads, and
//                 values that ranks send back for the backward passes
//   RECOMPUTED    values that a backward pass reads and that were not kept, and
//                 what leads to them (made_again.h)
//   WORKSPACE     all others
//
// In the last four, what is not needed at one time shares memory. A value that
// is made again has two places: the forward pass has it for as long as it reads
// it itself, RECOMPUTE and the backward passes find it in RECOMPUTED.
//
// An output that nobody reads lies nowhere. Where several ops read a tensor, a
// FORK parts them, and sums their gradients; norms that stand before the other
// reader add to what that makes. What a kind passes on unchanged (ADD) is the
// same memory.
#ifndef TROUPE_PROTO_PLAN_PLACE_UNIT_H_
#define TROUPE_PROTO_PLAN_PLACE_UNIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plan/made_again.h"
#include "proto/plan/packing.h"
#include "proto/unit.pb.h"

namespace troupe {

// Whose memory.
enum class UnitMemory {
  kNone,
  kBatch,
  kInput,
  kOutput,
  kStash,
  kWeightStash,
  kWorkspace,
  kInputGradient,
  kOutputGradient,
  kSegmentValues,
  kSegmentGradients,
  kRecomputed,
};
inline constexpr int kUnitMemories =
    static_cast<int>(UnitMemory::kRecomputed) + 1;

struct TensorPlace {
  bool exists() const { return memory != UnitMemory::kNone; }
  bool operator==(const TensorPlace&) const = default;

  // Where RECOMPUTE finds it.
  TensorPlace InRecompute() const {
    if (again_bytes < 0) return *this;
    return {.memory = UnitMemory::kRecomputed,
            .offset_bytes = again_bytes,
            .tensor = tensor};
  }
  // Where the backward passes do.
  TensorPlace InBackward() const {
    if (returned_bytes < 0) return InRecompute();
    return {.memory = UnitMemory::kSegmentGradients,
            .offset_bytes = returned_bytes,
            .tensor = tensor};
  }

  UnitMemory memory = UnitMemory::kNone;
  int64_t offset_bytes = 0;
  int tensor = -1;  // whose dims it has: index into UnitTable.tensors
  // Of a value that is made again, where in RECOMPUTED; -1: it is not.
  int64_t again_bytes = -1;
  // Of a value that a RETURN brings back for the backward passes, where in
  // SEGMENT_GRADIENTS; -1: none does.
  int64_t returned_bytes = -1;
  // Of an input or output of the unit, or its gradient, and of what it reads of
  // the batch: which (ports.h).
  int port = 0;
};
inline bool AreSamePlace(const TensorPlace& a, const TensorPlace& b) {
  return a.memory == b.memory && a.port == b.port &&
         a.offset_bytes == b.offset_bytes;
}

// The tensors of one op. Parallel to Op.inputs and Op.outputs; what an op has
// no part in lies nowhere.
struct OpPlaces {
  std::vector<TensorPlace> inputs;
  std::vector<TensorPlace> outputs;
  // Written by the backward-input pass; of an input that is made by a fused
  // GELU, the gradient of the GELU's.
  std::vector<TensorPlace> input_gradients;
  // What is added to that: the gradient which other readers made.
  std::vector<TensorPlace> added_gradients;
  // Read by both backward passes.
  std::vector<TensorPlace> output_gradients;
  // Parallel to Op.backward_inputs: values, and their gradients.
  std::vector<TensorPlace> backward_inputs;
  std::vector<TensorPlace> backward_input_gradients;
  // Whether backward-weight makes the first input's gradient once more
  // (InputGradient::kMadeAgain), for an op that runs behind it there.
  bool makes_gradient_again = false;
  Again again = Again::kNo;
};

struct UnitPlaces {
  std::vector<OpPlaces> ops;     // as in the table
  int64_t activation_bytes = 0;  // of the unit's outputs
  int64_t stash_bytes = 0;
  int64_t weight_stash_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t segment_bytes = 0;
  int64_t segment_gradient_bytes = 0;
  int64_t recomputed_bytes = 0;
};

enum class UnitUse { kTraining, kDecoding };

// Decoding has no backward passes. REQUIRES a table that CheckTable accepts.
// InvalidArgument "op 3 LINEAR: ..." where gradients of it cannot be placed: a
// tensor has readers that a FORK should have parted, or none.
absl::StatusOr<UnitPlaces> TryPlaceUnit(const UnitTable& table, UnitUse use);

// The same for a table that was placed before, or as our own code makes it:
// CHECKs.
UnitPlaces PlaceUnit(const UnitTable& table, UnitUse use);

// Of those of ops [begin, end) that run again.
Work WorkAgain(const UnitTable& table, const UnitPlaces& places, int begin,
               int end);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PLACE_UNIT_H_
