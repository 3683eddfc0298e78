// training.lora: whether the layers that it names are ones that can have an
// adapter. What they get follows from the job alone (proto/plan/lora.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_LORA_H_
#define TROUPE_SCHEDULER_LAYOUTS_LORA_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// `units` with their adapters, whole. InvalidArgument "training.lora.modules:
// ..." for an entry that names no layer, or one that has none: experts,
// routers, the vocabulary projection, and what is no linear layer.
absl::Status CheckLora(const TrainingSpec& training, const UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_LORA_H_
