// Trains every plan of the matrix (tensor_matrix.h) beside the single rank, and
// says of each how far it is from that, relative to it: its losses, its
// gradients' norms, its weights. Ends with 1 where one is further than rounding
// takes it.
//
//   bazel run //tests/equivalence:tensor_matrix
//   bazel run //tests/equivalence:tensor_matrix -- llama zb_v "tensor 4"
//
// The second: those whose name has all of the words.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "tests/equivalence/tensor_matrix.h"

namespace troupe {
namespace {

bool HasAll(const std::string& name, const std::vector<std::string>& words) {
  return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
    return absl::StrContains(name, word);
  });
}

int Main(const std::vector<std::string>& words) {
  ReferenceRuns references;
  TrainingDifference furthest;
  int count = 0;
  int failed = 0;
  for (const TensorConfiguration& configuration : TensorMatrix()) {
    const std::string name = configuration.name();
    if (!HasAll(name, words)) continue;
    const auto difference = TrainBesideOneRank(configuration, references);
    ++count;
    const bool good = difference.ok() && difference->IsRounding();
    if (!good) ++failed;
    if (difference.ok()) {
      const auto& [losses, norms, weights] = *difference;
      std::printf("%-60s  loss %.1e  norm %.1e  weights %.1e  %s\n",
                  name.c_str(), losses, norms, weights, good ? "ok" : "FAILED");
      furthest = {.losses = std::max(furthest.losses, losses),
                  .norms = std::max(furthest.norms, norms),
                  .weights = std::max(furthest.weights, weights)};
    } else {
      std::printf("%-60s  FAILED: %s\n", name.c_str(),
                  difference.status().ToString().c_str());
    }
    std::fflush(stdout);
  }
  std::printf(
      "%d plans, %d FAILED; furthest: loss %.1e, norm %.1e, "
      "weights %.1e\n",
      count, failed, furthest.losses, furthest.norms, furthest.weights);
  return failed == 0 && count > 0 ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  CHECK_OK(troupe::StartLog(
      {.name = "tensor_matrix", .level = troupe::LogLevel::kWarning}));
  return troupe::Main({argv + 1, argv + argc});
}
