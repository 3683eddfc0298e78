// What a unit is made from, whatever the architecture: the row of the table in
// build_units.cc takes one for each unit of the plan.
#ifndef TROUPE_WORKER_MODEL_UNIT_OPTIONS_H_
#define TROUPE_WORKER_MODEL_UNIT_OPTIONS_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/micro_batch.h"

namespace troupe {

// The same for all units of a job.
struct BuildUnitsOptions {
  MicroBatchShape shape;
  double dropout = 0;  // probability, where the model has it
  uint64_t seed = 0;   // of the job
};

struct UnitOptions {
  ModelSpec model;
  Unit unit;
  Unit
      tied_unit;  // whose parameter `unit` uses too; empty where it is not tied
  int64_t input_bytes = 0;  // activation_bytes of the unit before
  BuildUnitsOptions build;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_UNIT_OPTIONS_H_
