#include "scheduler/pipelines/compute_order.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

std::string StepText(char letter, const ComputeStep& step) {
  std::string text =
      absl::StrCat(std::string(1, letter), step.stage, "m", step.micro_batch);
  if (step.ahead > 0) absl::StrAppend(&text, "+", step.ahead);
  if (step.weight_version > 0) absl::StrAppend(&text, "@", step.weight_version);
  return text;
}

std::string StepsText(const std::vector<ComputeStep>& steps) {
  constexpr char kLetters[] = {'F', 'I', 'W'};
  std::vector<std::string> words;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i + 1 < steps.size() && OneBackward(steps[i], steps[i + 1])) {
      words.push_back(StepText('B', steps[i++]));
    } else {
      words.push_back(StepText(kLetters[steps[i].kind], steps[i]));
    }
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

bool PipelineShape::Has(const std::string& option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

bool OneBackward(const ComputeStep& first, const ComputeStep& second) {
  return first.kind == ComputeStep::kBackwardInput &&
         second.kind == ComputeStep::kBackwardWeight && !first.split &&
         first.stage == second.stage &&
         first.micro_batch == second.micro_batch && first.ahead == second.ahead;
}

std::vector<std::vector<int>> StageHolders(const ComputeOrder& order,
                                           int stages) {
  std::vector<std::vector<int>> holders(stages);
  for (size_t rank = 0; rank < order.size(); ++rank) {
    for (const ComputeStep& step : order[rank]) {
      std::vector<int>& of_stage = holders.at(step.stage);
      if (step.kind == ComputeStep::kForward &&
          (of_stage.empty() || of_stage.back() != static_cast<int>(rank))) {
        of_stage.push_back(rank);
      }
    }
  }
  return holders;
}

int MaxAhead(const std::vector<ComputeStep>& steps) {
  int ahead = 0;
  for (const ComputeStep& step : steps) ahead = std::max(ahead, step.ahead);
  return ahead;
}

int WeightVersions(const std::vector<ComputeStep>& steps) {
  int oldest = 0;
  for (const ComputeStep& step : steps) {
    oldest = std::max(oldest, step.weight_version);
  }
  return oldest + 1;
}

bool DelaysGradients(const ComputeOrder& order) {
  return std::any_of(order.begin(), order.end(),
                     [](const std::vector<ComputeStep>& steps) {
                       return WeightVersions(steps) > 1;
                     });
}

std::string ComputeOrderText(const ComputeOrder& order) {
  std::string text;
  for (const std::vector<ComputeStep>& steps : order) {
    absl::StrAppend(&text, StepsText(steps), "\n");
  }
  return text;
}

}  // namespace troupe
