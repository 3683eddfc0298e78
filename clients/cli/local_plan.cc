#include "clients/cli/local_plan.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/local/process.h"
#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"

namespace troupe {
namespace {

absl::StatusOr<WorkerDescription> DescribeThisMachine(
    const LocalPlanOptions& options) {
  ASSIGN_OR_RETURN(const std::string program,
                   FindProgram("troupe-worker", options.search));
  std::vector<std::string> command = {program, "calibrate", "--describe"};
  for (std::string& flag :
       ShareArguments(ShareOfMachine(options.workers, options.share), 0)) {
    command.push_back(std::move(flag));
  }
  if (!options.calibration.empty()) {
    command.insert(command.end(), {"--calibration", options.calibration});
  }
  ASSIGN_OR_RETURN(const std::string output,
                   RunFilter({.command = std::move(command), .input = ""}));
  WorkerDescription description;
  if (!description.ParseFromString(output)) {
    return absl::InternalError(
        absl::StrCat(program, " calibrate --describe printed no description"));
  }
  return description;
}

}  // namespace

absl::StatusOr<CompileResponse> PlanForWorkers(const CompileRequest& request,
                                               const PlanExtras& extras,
                                               const ProgramSearch& search) {
  ASSIGN_OR_RETURN(const std::string program,
                   FindProgram("troupe-scheduler", search));
  std::vector<std::string> command = {program, "compile"};
  if (extras.programs) command.emplace_back("--programs");
  if (extras.timeline) command.emplace_back("--timeline");
  if (extras.progress) command.emplace_back("--progress");
  ASSIGN_OR_RETURN(const std::string output,
                   RunFilter({.command = std::move(command),
                              .input = request.SerializeAsString(),
                              .shows_errors = extras.progress}));
  CompileResponse response;
  if (!response.ParseFromString(output)) {
    return absl::InternalError(
        absl::StrCat(program, " compile printed no plan"));
  }
  if (!response.error().empty()) {
    return absl::InvalidArgumentError(response.error());
  }
  return response;
}

absl::StatusOr<CompileResponse> PlanLocally(const JobSpec& job,
                                            const LocalPlanOptions& options) {
  // Before the worker is asked, which may have to measure.
  RETURN_IF_ERROR(CheckSizes(job.parallelism()));
  RETURN_IF_ERROR(FindProgram("troupe-scheduler", options.search).status());
  ASSIGN_OR_RETURN(const WorkerDescription worker,
                   DescribeThisMachine(options));
  CompileRequest request;
  *request.mutable_job() = job;
  request.set_explain(options.explain);
  for (int i = 0; i < options.workers; ++i) {
    *request.add_workers() = worker;
    request.mutable_workers(i)->set_name(absl::StrCat("worker-", i));
  }
  return PlanForWorkers(request, options.extras, options.search);
}

}  // namespace troupe
