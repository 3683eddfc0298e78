// Which workers write a text. One idle worker, where one has memory enough for
// the weights; else as many as the model was cut over when it was trained (or,
// where that was in three dimensions, as many of those as it goes over in one),
// or as many as the request says, each with a part.
#ifndef TROUPE_SCHEDULER_CLUSTER_CHOOSE_WRITERS_H_
#define TROUPE_SCHEDULER_CLUSTER_CHOOSE_WRITERS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/ids.h"
#include "proto/job.pb.h"
#include "proto/scheduler.pb.h"
#include "proto/text_plan.pb.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

struct Writers {
  TextPlan plan;
  std::vector<WorkerId> ids;  // by rank
};

// `trained`: the job that made the checkpoint. One worker is `first` wherever
// it will do. UNAVAILABLE: too few idle workers, or with too little memory;
// says how many it takes and why. INVALID_ARGUMENT: as JobCompiler::PlanText.
absl::StatusOr<Writers> ChooseWriters(const GenerateRequest& request,
                                      const JobSpec& trained, WorkerId first,
                                      const JobCompiler& compiler,
                                      const WorkerTable& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CHOOSE_WRITERS_H_
