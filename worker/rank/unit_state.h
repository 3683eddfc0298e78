// What a checkpoint holds of a unit: its flat buffers as logical tensors, under
// the names that any other plan looks for.
//
//   <name>                       the parameter, as in Hugging Face's files
//   optimizer.exp_avg.<name>     AdamW: first moments
//   optimizer.exp_avg_sq.<name>  AdamW: second moments
//   optimizer.momentum.<name>    SGD with momentum
#ifndef TROUPE_WORKER_RANK_UNIT_STATE_H_
#define TROUPE_WORKER_RANK_UNIT_STATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// A logical tensor and where it lies; f32, dense.
struct StateTensor {
  std::string name;
  std::vector<int64_t> shape;
  char* data = nullptr;  // on the device, but where the next says otherwise
  bool on_host = false;
  int64_t elements = 0;
};

// A unit's flat buffers: unit.flat_elements() f32 of parameters, which are
// MASTER_WEIGHTS where the job has them and PARAMETERS where not, and the
// optimizer's state behind one another (docs/plan.md, OPTIMIZER_STATE).
struct UnitFlatBuffers {
  char* parameters = nullptr;
  char* rounded_parameters = nullptr;  // bf16 PARAMETERS; null: no master
  char* optimizer_state = nullptr;     // null: none is kept
};

std::vector<StateTensor> UnitStateTensors(const OptimizerSpec& optimizer,
                                          const Unit& unit,
                                          const UnitFlatBuffers& memory);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_UNIT_STATE_H_
