#include "scheduler/compile/compile.h"

#include <istream>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/planner/explain.h"
#include "scheduler/planner/planner.h"
#include "scheduler/service/plan_compiler.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {
namespace {

// A job with `elastic` on fewer workers than it has ranks, as a cluster of
// these would plan it; nothing: they are enough, or it is another job.
absl::optional<CompileOutcome> CompileNarrower(
    const JobSpec& job, const std::vector<WorkerDescription>& workers) {
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

}  // namespace

CompileResponse Compile(const CompileRequest& request) {
  CompileResponse response;
  const std::vector<WorkerDescription> workers(request.workers().begin(),
                                               request.workers().end());
  if (request.explain()) {
    absl::StatusOr<Explanation> explanation = Explain(request.job(), workers);
    if (explanation.ok()) {
      *response.mutable_explanation() = *std::move(explanation);
    } else {
      response.set_error(std::string(explanation.status().message()));
    }
    return response;
  }
  const absl::optional<CompileOutcome> narrower =
      CompileNarrower(request.job(), workers);
  if (narrower.has_value() && narrower->fits()) {
    *response.mutable_predicted() = narrower->compiled.predicted;
    *response.mutable_plan() = *narrower->compiled.plan;
    return response;
  }
  absl::StatusOr<Plan> plan = narrower.has_value()
                                  ? narrower->refusal
                                  : CompilePlan(request.job(), workers);
  if (!plan.ok()) {
    response.set_error(std::string(plan.status().message()));
    return response;
  }
  *response.mutable_predicted() = PredictTimeline(*plan, workers);
  *response.mutable_plan() = *std::move(plan);
  return response;
}

int CompileMain(std::istream& in, std::ostream& out) {
  const std::string bytes((std::istreambuf_iterator<char>(in)),
                          std::istreambuf_iterator<char>());
  CompileRequest request;
  if (!request.ParseFromString(bytes)) return 1;
  out << Compile(request).SerializeAsString() << std::flush;
  return out.good() ? 0 : 1;
}

}  // namespace troupe
