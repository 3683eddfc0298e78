#include "scheduler/planner/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "scheduler/passes/nominal_cost.h"

namespace troupe {
namespace {

// Units of each stage, first stage first.
using Counts = std::vector<int>;

absl::StatusOr<Counts> GivenCounts(const ParallelismSpec& parallelism,
                                   int stages, int units) {
  const auto& given = parallelism.stages();
  if (given.size() != stages) {
    return FieldError(
        "parallelism.stages",
        absl::StrCat("[", absl::StrJoin(given, ", "), "] has ", given.size(),
                     " stages; parallelism.pipeline ", parallelism.pipeline(),
                     " with parallelism.virtual_stages ",
                     parallelism.virtual_stages(), " has ", stages));
  }
  for (const int count : given) {
    RETURN_IF_ERROR(
        CheckInteger("parallelism.stages", count, {.min = 1, .max = units}));
  }
  const int64_t sum = std::accumulate(given.begin(), given.end(), int64_t{0});
  if (sum == units) return Counts(given.begin(), given.end());
  return FieldError("parallelism.stages",
                    absl::StrCat("[", absl::StrJoin(given, ", "), "] are ", sum,
                                 " units, the model has ", units,
                                 ", embedding and head included"));
}

// What a cut costs: compared by its costliest stage, then by the sum of
// squares.
struct CutCost {
  double most = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
  bool operator<(const CutCost& other) const {
    // Costs that differ in their last bits only are the same.
    if (most < other.most * (1 - 1e-12)) return true;
    if (other.most < most * (1 - 1e-12)) return false;
    return squares < other.squares * (1 - 1e-12);
  }
};

// best_[s][u]: the cheapest cut of the first u units into s stages.
class Cuts {
 public:
  Cuts(const std::vector<Unit>& units, int stages)
      : sums_(units.size() + 1, 0),
        best_(stages + 1, std::vector<CutCost>(units.size() + 1)),
        last_(stages + 1, std::vector<int>(units.size() + 1, 0)) {
    for (size_t u = 0; u < units.size(); ++u) {
      sums_[u + 1] = sums_[u] + NominalSeconds(units[u]);
    }
    best_[0][0] = {.most = 0, .squares = 0};
    for (int s = 1; s <= stages; ++s) {
      for (size_t end = s; end <= units.size(); ++end) Extend(s, end);
    }
  }

  Counts Cheapest() const {
    Counts counts;
    int end = static_cast<int>(sums_.size()) - 1;
    for (int s = static_cast<int>(best_.size()) - 1; s > 0; --s) {
      counts.push_back(last_[s][end]);
      end -= last_[s][end];
    }
    std::reverse(counts.begin(), counts.end());
    return counts;
  }

 private:
  // The last of s stages takes units [begin, end).
  void Extend(int s, size_t end) {
    for (size_t begin = s - 1; begin < end; ++begin) {
      const double cost = sums_[end] - sums_[begin];
      const CutCost& before = best_[s - 1][begin];
      const CutCost cut = {.most = std::max(before.most, cost),
                           .squares = before.squares + cost * cost};
      if (!(cut < best_[s][end])) continue;
      best_[s][end] = cut;
      last_[s][end] = static_cast<int>(end - begin);
    }
  }

  std::vector<double> sums_;  // of the costs of the units before
  std::vector<std::vector<CutCost>> best_;
  std::vector<std::vector<int>> last_;  // units of the last stage
};

}  // namespace

absl::StatusOr<std::vector<std::vector<int>>> PartitionUnits(
    const std::vector<Unit>& units, int stages,
    const ParallelismSpec& parallelism) {
  const int unit_count = static_cast<int>(units.size());
  if (stages > unit_count) {
    return FieldError(
        "parallelism.pipeline",
        absl::StrCat(parallelism.pipeline(),
                     " with parallelism.virtual_stages ",
                     parallelism.virtual_stages(), " makes ", stages,
                     " stages, and the model has ", unit_count,
                     " units, embedding and head included; use at most ",
                     unit_count, " stages"));
  }
  Counts counts;
  if (parallelism.stages().empty()) {
    counts = Cuts(units, stages).Cheapest();
  } else {
    ASSIGN_OR_RETURN(counts, GivenCounts(parallelism, stages, unit_count));
  }
  std::vector<std::vector<int>> partition;
  int next = 0;
  for (const int count : counts) {
    std::vector<int>& stage = partition.emplace_back(count);
    std::iota(stage.begin(), stage.end(), next);
    next += count;
  }
  return partition;
}

}  // namespace troupe
