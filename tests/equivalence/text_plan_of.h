// What the scheduler would have ranks do that write a text with a checkpoint.
#ifndef TROUPE_TESTS_EQUIVALENCE_TEXT_PLAN_OF_H_
#define TROUPE_TESTS_EQUIVALENCE_TEXT_PLAN_OF_H_

#include <string>

#include "proto/base/check.h"
#include "proto/text_plan.pb.h"
#include "scheduler/planner/plan_text.h"
#include "worker/engine/text_generation.h"

namespace troupe {

struct TextCut {
  int tensor = 1;
  int pipeline = 1;
};

// Ranks are threads. Empty where the checkpoint cannot be read.
inline TextPlan TextPlanOf(const std::string& checkpoint,
                           const TextCut& cut = {}) {
  absl::StatusOr<CheckpointOrigin> origin = OriginOf(checkpoint);
  if (!origin.ok()) return TextPlan();
  ParallelismSpec& parallelism = *origin->job.mutable_parallelism();
  parallelism.set_tensor(cut.tensor);
  parallelism.set_pipeline(cut.pipeline);
  absl::StatusOr<TextPlan> plan = PlanText(origin->job);
  CHECK_OK(plan.status());
  for (Group& group : *plan->mutable_groups()) {
    group.add_carriers()->set_backend("in_process");
  }
  return *plan;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_TEXT_PLAN_OF_H_
