#include "tests/fuzz/plan_job.h"

#include <cstdint>

#include "proto/base/check.h"
#include "proto/plan/model.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

constexpr int kRanks = 4;
constexpr int64_t kPassesMax = 200;  // of a unit on a micro-batch, in a plan

bool IsShort(const JobSpec& resolved) {
  const TrainingSpec& training = resolved.training();
  const int64_t sequences =
      int64_t{training.global_batch_size()} +
      (training.validate_every() > 0 ? training.validation_sequences() : 0);
  return sequences / training.micro_batch_size() *
             UnitCount(resolved.model()) <=
         kPassesMax;
}

}  // namespace

void PlanJob(const JobSpec& job) {
  const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  if (!resolved.ok()) return;
  const absl::StatusOr<JobSpec> twice = ResolveJob(*resolved);
  CHECK_OK(twice.status());
  CHECK_EQ(twice->SerializeAsString(), resolved->SerializeAsString());
  if (!IsShort(*resolved)) return;
  CompilePlan(*resolved, ExampleWorkers(kRanks)).status().IgnoreError();
}

}  // namespace troupe
