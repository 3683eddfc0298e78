// Trains plans that are drawn at random (plan_matrix.h) beside the single rank,
// and says of each how far it is from that, relative to it: its losses, its
// gradients' norms, its weights. Draws that the planner refuses are counted,
// with each of its reasons once. Ends with 1 where a plan is further than
// rounding takes it, or is refused for no reason that names a field.
//
//   bazel run //tests/equivalence:plan_matrix -- --draws 200 --seed 1
//   bazel run //tests/equivalence:plan_matrix -- --seed 1 --only 37
//   bazel run //tests/equivalence:plan_matrix -- --draws 200 --plans
//
// The second: that draw alone. The third trains nothing: it prints each plan's
// fingerprint, or why it is refused, so that two versions of the planner can be
// compared line by line.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/plan_matrix.h"

namespace troupe {
namespace {

// By reason without its numbers: the first in full, and how many there were.
using Refusals = std::map<std::string, std::pair<std::string, int>>;

class Table {
 public:
  explicit Table(uint64_t seed) : seed_(seed) {}

  void Run(int number) {
    const PlanDraw draw = DrawPlan(seed_, number);
    const absl::Status refusal = draw.Refusal();
    ++draws_;
    if (!refusal.ok()) return Refuse(number, draw, refusal);
    const auto difference = references_.Compare(draw.legs, draw.reference);
    if (!difference.ok()) {
      return Fail(number, draw, difference.status().ToString());
    }
    const auto& [losses, norms, weights] = *difference;
    TrainingDifference& furthest = furthest_[draw.precision()];
    furthest = {.losses = std::max(furthest.losses, losses),
                .norms = std::max(furthest.norms, norms),
                .weights = std::max(furthest.weights, weights)};
    resumed_ += draw.legs.size() > 1 ? 1 : 0;
    const TrainingDifference allowed = references_.FromF32(draw.reference);
    if (!difference->IsRounding(allowed)) {
      Fail(
          number, draw,
          absl::StrCat("trains another model; its precision is from f32: loss ",
                       allowed.losses, ", norm ", allowed.norms, ", weights ",
                       allowed.weights));
    }
    std::printf("%4d  loss %.1e  norm %.1e  weights %.1e  %s\n", number, losses,
                norms, weights, draw.name.c_str());
    std::fflush(stdout);
  }

  // Whether all is well.
  bool Finish() const {
    int refused = 0;
    for (const auto& [reason, of] : refusals_) {
      std::printf("refused %d times: %s\n", of.second, of.first.c_str());
      refused += of.second;
    }
    std::printf(
        "%d draws: %d trained, %d of them over a checkpoint, %d refused, %d "
        "FAILED\n",
        draws_, draws_ - refused - failed_, resumed_, refused, failed_);
    for (const auto& [precision, furthest] : furthest_) {
      std::printf("furthest in %s: loss %.1e, norm %.1e, weights %.1e\n",
                  precision.c_str(), furthest.losses, furthest.norms,
                  furthest.weights);
    }
    return failed_ == 0 && draws_ > refused;
  }

 private:
  void Refuse(int number, const PlanDraw& draw, const absl::Status& status) {
    const std::string reason(status.message());
    // "parallelism.zero: ..."
    if (!absl::IsInvalidArgument(status) ||
        !std::regex_search(reason, std::regex("^[a-z_.]+: "))) {
      return Fail(number, draw, "refused: " + status.ToString());
    }
    auto& [first, count] =
        refusals_[std::regex_replace(reason, std::regex("[0-9]+"), "#")];
    if (count++ == 0) first = reason;
  }
  void Fail(int number, const PlanDraw& draw, const std::string& why) {
    ++failed_;
    std::printf("%4d  FAILED: %s  %s\n", number, draw.name.c_str(),
                why.c_str());
    std::fflush(stdout);
  }

  const uint64_t seed_;
  ReferenceRuns references_;
  Refusals refusals_;
  std::map<std::string, TrainingDifference> furthest_;
  int draws_ = 0;
  int resumed_ = 0;
  int failed_ = 0;
};

int Usage() {
  std::fprintf(
      stderr,
      "usage: plan_matrix [--draws N] [--seed N] [--only N] [--plans]\n");
  return 2;
}

void PrintPlans(uint64_t seed, int number) {
  for (const Leg& leg : DrawPlan(seed, number).legs) {
    const auto plan = CompileForThreads(leg.job, RanksNeeded(leg.job));
    std::printf("%4d  %s\n", number,
                plan.ok() ? PlanFingerprint(*plan).c_str()
                          : plan.status().ToString().c_str());
  }
}

int Main(const std::vector<absl::string_view>& arguments) {
  int draws = 200;
  int only = -1;
  uint64_t seed = 1;
  bool plans = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view name = arguments[i];
    if (name == "--plans") {
      plans = true;
      continue;
    }
    const absl::string_view value =
        ++i < arguments.size() ? arguments[i] : absl::string_view();
    const bool known = name == "--draws"  ? absl::SimpleAtoi(value, &draws)
                       : name == "--seed" ? absl::SimpleAtoi(value, &seed)
                       : name == "--only" ? absl::SimpleAtoi(value, &only)
                                          : false;
    if (!known || draws < 1) return Usage();
  }
  const int first = std::max(only, 0);
  const int end = only >= 0 ? only + 1 : draws;
  if (plans) {
    for (int number = first; number < end; ++number) PrintPlans(seed, number);
    return 0;
  }
  Table table(seed);
  for (int number = first; number < end; ++number) table.Run(number);
  return table.Finish() ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CHECK_OK(troupe::StartLog(
      {.name = "plan_matrix", .level = troupe::LogLevel::kWarning}));
  return troupe::Main({argv + 1, argv + argc});
}
