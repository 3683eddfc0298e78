#include "scheduler/pipelines/pipelines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/closest.h"
#include "scheduler/pipelines/gpipe.h"
#include "scheduler/pipelines/naive.h"
#include "scheduler/pipelines/one_forward_one_backward.h"

namespace troupe {

const std::vector<Pipeline>& Pipelines() {
  static const auto* const kPipelines = new std::vector<Pipeline>{
      {"naive", "one micro-batch at a time, forward and backward", NaiveOrder},
      {"gpipe", "all micro-batches forward, then all backward", GpipeOrder},
      {"1f1b", "backward as early as possible", OneForwardOneBackwardOrder},
  };
  return *kPipelines;
}

absl::StatusOr<Pipeline> FindPipeline(absl::string_view name) {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.name == name) return pipeline;
    names.emplace_back(pipeline.name);
  }
  const std::string closest = ClosestName(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no pipeline schedule \"", name, "\"; ",
      closest.empty() ? absl::StrCat("there are: ", absl::StrJoin(names, ", "))
                      : absl::StrCat("did you mean \"", closest, "\"?")));
}

}  // namespace troupe
