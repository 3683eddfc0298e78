#include "scheduler/compile/compile.h"

#include <istream>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/planner/explain.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/simulate.h"

namespace troupe {

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
  absl::StatusOr<Plan> plan = CompilePlan(request.job(), workers);
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
