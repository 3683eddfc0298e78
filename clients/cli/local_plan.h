// Planning without a daemon: `troupe-worker` says what this machine can do,
// `troupe-scheduler compile` makes the plan, both as filters.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_PLAN_H_
#define TROUPE_CLIENTS_CLI_LOCAL_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/local/machine_share.h"
#include "clients/cli/local/programs.h"
#include "proto/cluster.pb.h"
#include "proto/scheduler.pb.h"

namespace troupe {

// What a plan is wanted with: each makes the answer many times as large.
struct PlanExtras {
  bool programs = false;
  bool timeline = false;
  bool progress = false;  // of a search, on our stderr
};

struct LocalPlanOptions {
  int workers = 1;
  WorkerShare share;        // of each worker; what is not said is an even one
  std::string calibration;  // a file; empty: the user's cache
  ProgramSearch search;
  bool explain = false;  // in place of the plan
  PlanExtras extras;
};

// InvalidArgument where the job is refused (JobFile::Locate finds the place),
// Aborted where a program fails.
absl::StatusOr<CompileResponse> PlanLocally(const JobSpec& job,
                                            const LocalPlanOptions& options);

// The same for workers that somebody has described: worker i is to fill rank i.
absl::StatusOr<CompileResponse> PlanForWorkers(const CompileRequest& request,
                                               const PlanExtras& extras,
                                               const ProgramSearch& search);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_PLAN_H_
