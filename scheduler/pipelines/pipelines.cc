#include "scheduler/pipelines/pipelines.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/closest.h"
#include "scheduler/pipelines/naive.h"

namespace troupe {

const std::vector<Pipeline>& Pipelines() {
  static const auto* const kPipelines = new std::vector<Pipeline>{
      {"naive", "one micro-batch at a time, forward and backward", NaiveOrder},
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

std::string ComputeOrderText(const ComputeOrder& order) {
  std::string text;
  for (const std::vector<ComputeStep>& steps : order) {
    absl::string_view space = "";
    for (const ComputeStep& step : steps) {
      const char* const letter = step.kind == ComputeStep::kForward ? "F"
                                 : step.kind == ComputeStep::kBackwardInput
                                     ? "I"
                                     : "W";
      absl::StrAppend(&text, space, letter, step.stage, "m", step.micro_batch);
      space = " ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace troupe
