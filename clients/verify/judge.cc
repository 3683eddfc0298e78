#include "clients/verify/judge.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace troupe {
namespace {

using StepsByNumber = std::map<int64_t, const StepRecord*>;

StepsByNumber ByNumber(const std::vector<StepRecord>& steps) {
  StepsByNumber by_number;
  for (const StepRecord& step : steps) by_number[step.step()] = &step;
  return by_number;
}

StepDistance DistanceOf(int64_t number, const StepsByNumber& run,
                        const StepsByNumber& reference) {
  const auto a = run.find(number);
  const auto b = reference.find(number);
  if (a == run.end() || b == reference.end()) {
    return {.step = number, .loss = INFINITY, .grad_norm = INFINITY};
  }
  const auto apart = [](double of_run, double of_reference) {
    return RelativeDistance(std::abs(of_run - of_reference),
                            std::abs(of_reference));
  };
  const bool skipped = a->second->skipped() && b->second->skipped();
  return {
      .step = number,
      .loss = apart(a->second->loss(), b->second->loss()),
      .grad_norm =
          skipped ? 0 : apart(a->second->grad_norm(), b->second->grad_norm()),
      .skipped = skipped};
}

bool Skipped(int64_t number, const StepsByNumber& steps) {
  const auto it = steps.find(number);
  return it != steps.end() && it->second->skipped();
}

// One kind of distance over all steps or tensors.
class Largest {
 public:
  Largest(const char* what, double tolerance)
      : what_(what), tolerance_(tolerance) {}

  void Add(double distance) { most_ = std::max(most_, distance); }
  bool within() const { return most_ <= tolerance_; }
  std::string Text() const {
    return absl::StrFormat("%s %.1e of %.1e", what_, most_, tolerance_);
  }

 private:
  const char* const what_;
  const double tolerance_;
  double most_ = 0;
};

}  // namespace

VerifyTolerance ToleranceOf(const std::string& precision) {
  if (precision != "bf16" && precision != "fp16") return {};
  return {.loss = 3e-3, .gradient = 1e-1, .weights = 1e-2};
}

Judgement Judge(const JudgeOptions& options) {
  Largest loss("loss", options.tolerance.loss);
  Largest norm("norm of gradients", options.tolerance.gradient);
  Largest gradient("gradients", options.tolerance.gradient);
  Largest weights("weights", options.tolerance.weights);
  Judgement judgement;
  const StepsByNumber run = ByNumber(options.run);
  const StepsByNumber reference = ByNumber(options.reference);
  int skipped = 0;
  for (int64_t number = 1; number <= options.steps; ++number) {
    const auto it = reference.find(number);
    if (judgement.diverged == 0 && it != reference.end() &&
        !std::isfinite(it->second->loss())) {
      judgement.diverged = number;
    }
    const StepDistance& step =
        judgement.steps.emplace_back(DistanceOf(number, run, reference));
    if (judgement.parted > 0) continue;
    loss.Add(step.loss);
    if (Skipped(number, run) != Skipped(number, reference)) {
      judgement.parted = number;
      continue;
    }
    skipped += step.skipped;
    judgement.updated |= !step.skipped;
    norm.Add(step.grad_norm);
  }
  judgement.figures = absl::StrCat(loss.Text(), ", ", norm.Text());
  if (judgement.parted == 0) {
    for (const TensorDistance& tensor : options.tensors) {
      gradient.Add(tensor.gradient);
      weights.Add(tensor.weights);
    }
    absl::StrAppend(&judgement.figures, ", ", gradient.Text(), ", ",
                    weights.Text());
  }
  if (skipped > 0) {
    absl::StrAppend(&judgement.figures, "; of ", skipped,
                    skipped == 1 ? " step" : " steps",
                    " that both skipped, as gradients overflowed, the losses "
                    "are compared");
  }
  judgement.within = !judgement.steps.empty() && loss.within() &&
                     norm.within() && gradient.within() && weights.within();
  judgement.same = judgement.within && judgement.updated &&
                   judgement.parted == 0 && !options.tensors.empty();
  return judgement;
}

}  // namespace troupe
