// What a checkpoint holds of a unit: its flat buffers as logical tensors, under
// the names that any other plan looks for.
//
//   <name>                       the parameter, as in Hugging Face's files
//   optimizer.exp_avg.<name>     AdamW: first moments; Lion: moments
//   optimizer.exp_avg_sq.<name>  AdamW: second moments
//   optimizer.exp_avg_sq_row.<name>, optimizer.exp_avg_sq_col.<name>
//                                Adafactor: second moments of a matrix, by row
//                                and by column; of a vector exp_avg_sq
//   optimizer.momentum.<name>    Muon, SGD with momentum
//   optimizer.ema.<name>         with optimizer.ema: the average of the weights
#ifndef TROUPE_WORKER_RANK_UNIT_STATE_H_
#define TROUPE_WORKER_RANK_UNIT_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "ops/tensor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"
#include "proto/plan/slices.h"
#include "storage/checkpoint/tensor_box.h"
#include "worker/rank/stored_f32.h"
#include "worker/rank/tier_address.h"

namespace troupe {

// A box of the whole tensor, and where this rank has it: rows of as many
// elements as the box is wide. All dims but the last make rows, in order.
struct StateBox {
  TensorBox whole;
  int64_t begin = 0;             // element of StateTensor.data
  std::vector<int64_t> strides;  // of each dim, in elements; the last is 1

  int64_t rows() const;
  int64_t columns() const { return whole.shape.back(); }
  // Elements from the first row to this one.
  int64_t RowOffset(int64_t row) const;
  // Whether its rows lie behind one another.
  bool dense() const;
};

// A logical tensor, or what this rank has of one, and where it rests.
struct StateTensor {
  std::string name;
  std::vector<int64_t> shape;  // of the whole
  std::vector<StateBox> boxes;
  TierAddress data;          // of the flat buffer that it is in
  DType type = DType::kF32;  // in which it rests
  int64_t elements = 0;      // of this rank's boxes

  StoredElements At(const SliceRun& run) const {
    return {.first = data + run.local * static_cast<int64_t>(DTypeBytes(type)),
            .type = type,
            .count = run.count};
  }
};

// A unit's flat buffers, or the range of them that this rank has: of parameters
// that are trained f32, which are MASTER_WEIGHTS where the job has them and
// PARAMETERS where not, and the optimizer's states behind one another, of each
// what lies in the range (proto/plan/optimizer_states.h); of frozen ones
// PARAMETERS.
struct UnitFlatBuffers {
  TierAddress parameters;
  DType parameters_type = DType::kF32;
  TierAddress rounded_parameters;  // bf16 PARAMETERS; nowhere: no master
  TierAddress optimizer_state;     // nowhere: none is kept
  absl::optional<Range> holds;     // elements of each; nothing: all
};

// Of a unit that is cut, what `place` has; and of that what lies in `range` of
// the flat buffers, which is in memory; all that is, where it is not given.
std::vector<StateTensor> UnitStateTensors(
    const OptimizerSpec& optimizer, const Unit& unit,
    const UnitFlatBuffers& memory, const MeshPlace& place = {},
    const absl::optional<Range>& range = absl::nullopt);

// Elements [begin, end) of the whole tensor that this rank has, in runs that
// lie behind one another there and here.
std::vector<SliceRun> RunsWithin(const StateTensor& tensor, int64_t begin,
                                 int64_t end);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_UNIT_STATE_H_
