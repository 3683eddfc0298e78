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

// result[u]: the sum of the costs of the units before u.
std::vector<double> CostsBefore(const std::vector<Unit>& units) {
  std::vector<double> sums(units.size() + 1, 0);
  for (size_t u = 0; u < units.size(); ++u) {
    sums[u + 1] = sums[u] + NominalSeconds(units[u]);
  }
  return sums;
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
  // Borrows the costs before each unit, and before the end.
  Cuts(const std::vector<double>& sums, int stages)
      : sums_(sums),
        best_(stages + 1, std::vector<CutCost>(sums.size())),
        last_(stages + 1, std::vector<int>(sums.size(), 0)) {
    best_[0][0] = {.most = 0, .squares = 0};
    for (int s = 1; s <= stages; ++s) {
      for (size_t end = s; end < sums.size(); ++end) Extend(s, end);
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

  const std::vector<double>& sums_;
  std::vector<std::vector<CutCost>> best_;
  std::vector<std::vector<int>> last_;  // units of the last stage
};

// Moves units between stages, so that ranks that hold several have even loads.
class EvenRanks {
 public:
  // Borrows both.
  EvenRanks(const std::vector<double>& sums, const StageLayout& layout)
      : layout_(layout), sums_(sums) {
    for (const std::vector<int>& holders : layout.holders) {
      for (const int rank : holders) ranks_ = std::max(ranks_, rank + 1);
    }
  }

  Counts From(Counts counts) const {
    while (Improve(counts)) {
    }
    return counts;
  }

 private:
  // Of each stage.
  std::vector<double> Costs(const Counts& counts) const {
    std::vector<double> costs;
    int begin = 0;
    for (const int count : counts) {
      costs.push_back(sums_[begin + count] - sums_[begin]);
      begin += count;
    }
    return costs;
  }

  // Of each rank. Those of a stage that is held twice share its micro-batches.
  std::vector<double> Loads(const std::vector<double>& costs) const {
    std::vector<double> loads(ranks_, 0);
    for (size_t s = 0; s < costs.size(); ++s) {
      for (const int rank : layout_.holders[s]) {
        loads[rank] += costs[s] / layout_.holders[s].size();
      }
    }
    return loads;
  }

  double StepOf(const Counts& counts) const {
    const std::vector<double> costs = Costs(counts);
    const std::vector<double> loads = Loads(costs);
    return layout_.micro_batches *
               *std::max_element(loads.begin(), loads.end()) +
           (ranks_ - 1) * *std::max_element(costs.begin(), costs.end());
  }

  // The best move of one unit away from the busiest rank, if that helps.
  bool Improve(Counts& counts) const {
    const std::vector<double> loads = Loads(Costs(counts));
    const int busiest = static_cast<int>(
        std::max_element(loads.begin(), loads.end()) - loads.begin());
    double best_step = StepOf(counts) * (1 - 1e-9);
    Counts best;
    for (size_t from = 0; from < counts.size(); ++from) {
      const std::vector<int>& holders = layout_.holders[from];
      if (counts[from] == 1) continue;
      if (std::count(holders.begin(), holders.end(), busiest) == 0) continue;
      for (size_t to = 0; to < counts.size(); ++to) {
        Counts moved = counts;
        --moved[from];
        ++moved[to];
        const double moved_step = StepOf(moved);
        if (moved_step >= best_step) continue;
        best_step = moved_step;
        best = std::move(moved);
      }
    }
    if (best.empty()) return false;
    counts = std::move(best);
    return true;
  }

  const StageLayout& layout_;
  const std::vector<double>& sums_;
  int ranks_ = 0;
};

}  // namespace

absl::Status CheckStageCount(const ParallelismSpec& parallelism, int stages,
                             int units) {
  if (stages <= units) return absl::OkStatus();
  return FieldError(
      "parallelism.pipeline",
      absl::StrCat(parallelism.pipeline(), " with parallelism.virtual_stages ",
                   parallelism.virtual_stages(), " makes ", stages,
                   " stages, and the model has ", units,
                   " units, embedding and head included; use at most ", units,
                   " stages"));
}

absl::StatusOr<std::vector<std::vector<int>>> PartitionUnits(
    const std::vector<Unit>& units, const StageLayout& layout,
    const ParallelismSpec& parallelism) {
  const int stages = static_cast<int>(layout.holders.size());
  const int unit_count = static_cast<int>(units.size());
  RETURN_IF_ERROR(CheckStageCount(parallelism, stages, unit_count));
  Counts counts;
  if (parallelism.stages().empty()) {
    const std::vector<double> sums = CostsBefore(units);
    counts = EvenRanks(sums, layout).From(Cuts(sums, stages).Cheapest());
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
