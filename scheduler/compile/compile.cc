#include "scheduler/compile/compile.h"

#include <iostream>
#include <istream>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/planner/planner.h"
#include "scheduler/search/explain_choice.h"
#include "scheduler/search/plan_job.h"
#include "scheduler/service/plan_compiler.h"

namespace troupe {
namespace {

SearchProgress ProgressOn(std::ostream& err) {
  return [&err](const std::string& line) {
    constexpr char kEraseLine[] = "\r\x1b[K";
    err << kEraseLine << "searching: " << line << std::flush;
  };
}

// A job with `elastic` on fewer workers than it has ranks, as a cluster of
// these would plan it; nothing: they are enough, or it is another job.
absl::optional<CompileOutcome> CompileNarrower(
    const JobSpec& job, const std::vector<WorkerDescription>& workers) {
  if (LeavesParallelismOpen(job)) return absl::nullopt;
  const PlanCompiler compiler;
  const int count = static_cast<int>(workers.size());
  const absl::StatusOr<int> needed = compiler.RanksNeeded(job);
  if (!needed.ok() || count >= *needed) return absl::nullopt;
  std::vector<std::shared_ptr<const WorkerDescription>> there;
  for (const WorkerDescription& worker : workers) {
    there.push_back(std::make_shared<const WorkerDescription>(worker));
  }
  Compilation compilation;
  compilation.elastic = true;
  for (JobSpec& way : compiler.Narrower(job, count)) {
    Choice& choice = compilation.choices.emplace_back();
    choice.workers = there;
    choice.workers.resize(compiler.RanksNeeded(way).value_or(count));
    choice.spec = std::move(way);
  }
  if (compilation.choices.empty()) return absl::nullopt;
  return CompileFirstFit(compiler, compilation);
}

// As a cluster of these workers would, which may be fewer.
absl::StatusOr<PlannedJob> PlanForAll(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const CompileOptions& options) {
  PlannedJob result;
  PlanAndStep& planned = result.planned;
  absl::optional<CompileOutcome> narrower = CompileNarrower(job, workers);
  if (narrower.has_value()) {
    if (!narrower->fits()) return narrower->refusal;
    planned.plan = *narrower->compiled.plan;
    planned.step = std::move(narrower->compiled.predicted);
    return result;
  }
  if (options.timeline || LeavesParallelismOpen(job)) {
    return PlanJob(job, workers, {},
                   options.progress ? ProgressOn(std::cerr) : nullptr);
  }
  ASSIGN_OR_RETURN(planned.plan, CompilePlan(job, workers));
  return result;
}

absl::StatusOr<Explanation> ExplainAll(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const CompileOptions& options) {
  if (!LeavesParallelismOpen(job)) {
    return PlanCompiler().Explain(job, workers, {});
  }
  return ExplainChoice(job, workers, {},
                       options.progress ? ProgressOn(std::cerr) : nullptr);
}

}  // namespace

CompileResponse Compile(CompileRequest request, const CompileOptions& options) {
  CompileResponse response;
  const std::vector<WorkerDescription> workers(
      std::make_move_iterator(request.mutable_workers()->begin()),
      std::make_move_iterator(request.mutable_workers()->end()));
  request.clear_workers();
  if (request.explain()) {
    absl::StatusOr<Explanation> explanation =
        ExplainAll(request.job(), workers, options);
    if (explanation.ok()) {
      *response.mutable_explanation() = *std::move(explanation);
    } else {
      response.set_error(std::string(explanation.status().message()));
    }
    return response;
  }
  absl::StatusOr<PlannedJob> result =
      PlanForAll(request.job(), workers, options);
  if (!result.ok()) {
    response.set_error(std::string(result.status().message()));
    return response;
  }
  PlanAndStep& planned = result->planned;
  *response.mutable_plan() = std::move(planned.plan);
  if (result->explanation.has_search()) {
    *response.mutable_explanation() = std::move(result->explanation);
  }
  if (!options.programs) response.mutable_plan()->clear_roles();
  if (options.timeline) {
    *response.mutable_predicted() = std::move(planned.step);
  }
  return response;
}

int CompileMain(const CompileOptions& options, std::istream& in,
                std::ostream& out) {
  CompileRequest request;
  if (!request.ParseFromIstream(&in)) return 1;
  const CompileResponse response = Compile(std::move(request), options);
  if (options.progress) std::cerr << "\r\x1b[K" << std::flush;
  response.SerializeToOstream(&out);
  out.flush();
  return out.good() ? 0 : 1;
}

}  // namespace troupe
