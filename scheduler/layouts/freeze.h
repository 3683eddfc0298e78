// training.freeze: which parameters never change, and what follows for the
// tables of units, which say which gradients need not be computed. Nobody else
// reads the patterns; all that there is to spare follows from the parts
// (lay_parts.h) and the tables (proto/plan/ops).
#ifndef TROUPE_SCHEDULER_LAYOUTS_FREEZE_H_
#define TROUPE_SCHEDULER_LAYOUTS_FREEZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Sets Parameter.frozen of those whose names match. InvalidArgument
// "training.freeze: ..." where a pattern matches nothing, with names that are
// near, or where nothing is left to train.
absl::Status MarkFrozen(const TrainingSpec& training, UnitList& units);

// Sets it of all: in a job that only evaluates nothing is trained.
void FreezeAll(UnitList& units);

// How many elements are frozen, of whole parameters; those of ParameterCount.
int64_t FrozenCount(const UnitList& units);

// The same share of the work of a training step as these units do of what they
// would do if all were trained; 1 where nothing is frozen. REQUIRES whole
// units.
double TrainedWorkShare(const UnitList& units);

// Once units are cut: marks the tables. Does nothing where nothing is frozen.
void LayFrozen(UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_FREEZE_H_
