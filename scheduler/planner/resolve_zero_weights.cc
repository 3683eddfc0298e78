#include "scheduler/planner/resolve_zero_weights.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/resolve_micro_batches.h"

namespace troupe {
namespace {

constexpr char kWeightsField[] = "parallelism.zero_weights";
// Each group of slices lists the weights of its members.
constexpr int kReplicasMax = 1024;
// Each kind of replica has programs of its own.
constexpr int kUnlikeMax = 32;

std::string WeightsText(const ParallelismSpec& parallelism) {
  return absl::StrCat("[", absl::StrJoin(parallelism.zero_weights(), ", "),
                      "]");
}

int UnlikeWeights(const ParallelismSpec& parallelism) {
  std::vector<int> weights = {parallelism.zero_weights().begin(),
                              parallelism.zero_weights().end()};
  std::sort(weights.begin(), weights.end());
  return static_cast<int>(std::unique(weights.begin(), weights.end()) -
                          weights.begin());
}

absl::Status CheckWeightNumbers(const ParallelismSpec& parallelism) {
  const auto& weights = parallelism.zero_weights();
  const int replicas = ReplicasOf(parallelism);
  if (weights.size() != replicas) {
    return FieldError(
        kWeightsField,
        absl::StrCat(WeightsText(parallelism), " has ", weights.size(),
                     weights.size() == 1 ? " number" : " numbers",
                     ", and there are ", replicas,
                     replicas == 1 ? " replica" : " replicas",
                     " of parallelism.data; give one for each"));
  }
  for (const int weight : weights) {
    RETURN_IF_ERROR(
        CheckInteger(kWeightsField, weight, {.min = 1, .max = kWeightMax}));
  }
  if (replicas <= kReplicasMax && UnlikeWeights(parallelism) <= kUnlikeMax) {
    return absl::OkStatus();
  }
  return FieldError(
      kWeightsField,
      absl::StrCat("takes at most ", kReplicasMax, " replicas and ", kUnlikeMax,
                   " different weights; leave it out, or give similar replicas "
                   "the same weight"));
}

// Ranks with the same slice sum it, so each group of slices has the same
// weights.
absl::Status CheckRepeats(const ParallelismSpec& parallelism, int along) {
  const auto& weights = parallelism.zero_weights();
  if (along == 1) {
    return FieldError(kWeightsField,
                      "weights are of replicas, and with this "
                      "parallelism.zero_size slices are over ranks of one "
                      "replica; leave one of them out");
  }
  for (int i = along; i < weights.size(); ++i) {
    if (weights[i] == weights[i - along]) continue;
    return FieldError(
        kWeightsField,
        absl::StrCat(WeightsText(parallelism), ": with parallelism.zero_size ",
                     parallelism.zero_size(), " each ", along,
                     " neighbouring replicas have all slices, so the weights "
                     "repeat after ",
                     along, "; give such weights, or leave zero_size out"));
  }
  return absl::OkStatus();
}

absl::Status CheckHasSlices(const ParallelismSpec& parallelism,
                            const char* field) {
  if (parallelism.zero() == 0) {
    return FieldError(field,
                      "is for slices over replicas; set parallelism.zero to 1, "
                      "2 or 3, or leave it out");
  }
  if (parallelism.servers() == 0) return absl::OkStatus();
  return FieldError(field,
                    "does not go with parallelism.servers, whose slices are "
                    "even; leave one of them out");
}

}  // namespace

absl::Status ResolveZeroWeights(ParallelismSpec& parallelism) {
  const auto& weights = parallelism.zero_weights();
  const bool given = !weights.empty();
  if (!parallelism.has_zero_split()) {
    parallelism.set_zero_split(given ? kSplitGiven : kSplitEven);
  }
  const std::string split = parallelism.zero_split();
  RETURN_IF_ERROR(CheckName(kZeroSplitField, split,
                            {kSplitEven, kSplitByMemory, kSplitGiven}));
  if (given != (split == kSplitGiven)) {
    return FieldError(
        kZeroSplitField,
        given ? absl::StrCat(split, " leaves nothing to ", kWeightsField,
                             "; leave one of them out")
              : absl::StrCat(kSplitGiven, " needs ", kWeightsField,
                             ", a number for each replica; give them, or use "
                             "even or by_memory"));
  }
  if (split == kSplitEven) return absl::OkStatus();
  RETURN_IF_ERROR(
      CheckHasSlices(parallelism, given ? kWeightsField : kZeroSplitField));
  if (!given) return absl::OkStatus();
  RETURN_IF_ERROR(CheckWeightNumbers(parallelism));
  if (UnlikeWeights(parallelism) == 1) {
    ClearZeroWeights(parallelism);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(
      CheckRepeats(parallelism, ZeroSizeAlong(kReplicaAxis, parallelism)));
  for (const StrategySpec& strategy : parallelism.strategies()) {
    RETURN_IF_ERROR(CheckRepeats(
        parallelism,
        ZeroSizeAlong(kReplicaAxis, DealtWithStrategy(parallelism, strategy))));
  }
  return absl::OkStatus();
}

void ClearZeroWeights(ParallelismSpec& parallelism) {
  parallelism.clear_zero_weights();
  parallelism.set_zero_split(kSplitEven);
}

}  // namespace troupe
