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

// Sums up to each unit, and to the end: those of units [begin, end) are a
// difference.
template <typename Number>
class Sums {
 public:
  void Add(Number number) { before_.push_back(before_.back() + number); }
  Number Of(size_t begin, size_t end) const {
    return before_[end] - before_[begin];
  }

 private:
  std::vector<Number> before_ = {0};
};

// What stages of units cost where they lie.
class StageCosts {
 public:
  // Borrows the layout.
  StageCosts(const std::vector<Unit>& units, const StageLayout& layout)
      : layout_(layout) {
    for (const std::vector<int>& holders : layout.holders) {
      for (const int place : holders) places_ = std::max(places_, place + 1);
    }
    if (layout.seconds.empty()) {
      Sums<double>& nominal = by_place_.emplace_back().emplace_back();
      for (const Unit& unit : units) nominal.Add(NominalSeconds(unit));
    }
    for (const std::vector<EqualRanks>& place : layout.seconds) {
      std::vector<Sums<double>>& of_place = by_place_.emplace_back();
      for (const EqualRanks& ranks : place) {
        Sums<double>& sums = of_place.emplace_back();
        for (const double seconds : ranks.seconds) sums.Add(seconds);
      }
    }
    if (!layout.memory.has_value()) return;
    for (const int64_t bytes : layout.memory->resident) resident_.Add(bytes);
    for (const int64_t bytes : layout.memory->kept) kept_.Add(bytes);
  }

  const StageLayout& layout() const { return layout_; }
  int stages() const { return static_cast<int>(layout_.holders.size()); }
  int places() const { return places_; }

  // Of units [begin, end) at a place, and on the slowest that holds the stage.
  double AtPlace(int place, size_t begin, size_t end) const {
    const auto& sums = by_place_[by_place_.size() == 1 ? 0 : place];
    double most = 0;
    for (const Sums<double>& of : sums) {
      most = std::max(most, of.Of(begin, end));
    }
    return most;
  }
  double OfStage(int stage, size_t begin, size_t end) const {
    double most = 0;
    for (const int place : layout_.holders[stage]) {
      most = std::max(most, AtPlace(place, begin, end));
      if (by_place_.size() == 1) break;
    }
    return most;
  }

  // Bytes of the stage's units.
  int64_t BytesOf(int stage, size_t begin, size_t end) const {
    if (!layout_.memory.has_value()) return 0;
    return resident_.Of(begin, end) +
           layout_.memory->in_flight[stage] * kept_.Of(begin, end);
  }
  // What of it there is no room for where the stage lies. Places that hold
  // several have an equal part of their room for each.
  int64_t LackOf(int stage, size_t begin, size_t end) const {
    if (!layout_.memory.has_value()) return 0;
    int64_t lack = 0;
    for (const int place : layout_.holders[stage]) {
      lack = std::max(lack, BytesOf(stage, begin, end) -
                                layout_.memory->room[place] / StagesAt(place));
    }
    return lack;
  }

 private:
  int64_t StagesAt(int place) const {
    int64_t count = 0;
    for (const std::vector<int>& holders : layout_.holders) {
      count += std::count(holders.begin(), holders.end(), place);
    }
    return count;
  }

  const StageLayout& layout_;
  int places_ = 0;
  // By place, or one for all; of each speed.
  std::vector<std::vector<Sums<double>>> by_place_;
  Sums<int64_t> resident_;
  Sums<int64_t> kept_;
};

// What a cut costs: compared by what it lacks, by its costliest stage, then by
// the sum of squares.
struct CutCost {
  int64_t lack = std::numeric_limits<int64_t>::max() / 2;  // one may add
  double most = std::numeric_limits<double>::infinity();
  double squares = std::numeric_limits<double>::infinity();
  bool operator<(const CutCost& other) const {
    if (lack != other.lack) return lack < other.lack;
    // Costs that differ in their last bits only are the same.
    if (most < other.most * (1 - 1e-12)) return true;
    if (other.most < most * (1 - 1e-12)) return false;
    return squares < other.squares * (1 - 1e-12);
  }
};

// best_[s][u]: the cheapest cut of the first u units into s stages.
class Cuts {
 public:
  // Borrows the costs.
  Cuts(const StageCosts& costs, size_t units)
      : costs_(costs),
        best_(costs.stages() + 1, std::vector<CutCost>(units + 1)),
        last_(costs.stages() + 1, std::vector<int>(units + 1, 0)) {
    best_[0][0] = {.lack = 0, .most = 0, .squares = 0};
    if (IsAlike()) limit_ = LeastMost(units) * (1 + kMuch);
    for (int s = 1; s <= costs.stages(); ++s) {
      for (size_t end = s; end <= units; ++end) {
        if (MayBeBest(s, end)) Extend(s, end);
      }
    }
  }

  Counts Cheapest() const {
    Counts counts;
    int end = static_cast<int>(best_.front().size()) - 1;
    for (int s = costs_.stages(); s > 0; --s) {
      counts.push_back(last_[s][end]);
      end -= last_[s][end];
    }
    std::reverse(counts.begin(), counts.end());
    return counts;
  }

 private:
  // Much costlier than what CutCost takes for equal.
  static constexpr double kMuch = 1e-9;

  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };

  bool IsAlike() const {
    return costs_.layout().seconds.empty() &&
           !costs_.layout().memory.has_value();
  }

  // On places that are alike, what the costliest stage of the best cut costs:
  // the least for which stages that are filled in turn are no more than there
  // are.
  double LeastMost(size_t units) const {
    const auto stages_with = [&](double most) {
      int stages = 0;
      for (size_t begin = 0; begin < units; ++stages) {
        size_t end = begin + 1;
        while (end < units && costs_.OfStage(0, begin, end + 1) <= most) ++end;
        begin = end;
      }
      return stages;
    };
    double least = 0;  // that no cut is below
    for (size_t u = 0; u < units; ++u) {
      least = std::max(least, costs_.OfStage(0, u, u + 1));
    }
    double most = std::max(least, costs_.OfStage(0, 0, units));
    constexpr int kHalvings = 60;
    for (int i = 0; i < kHalvings && least < most; ++i) {
      const double middle = least + (most - least) / 2;
      (stages_with(middle) <= costs_.stages() ? most : least) = middle;
    }
    return most;
  }

  // Whether a best cut may have its first s stages end there: what is before
  // and what is behind must each be no more than that number of stages hold.
  bool MayBeBest(int s, size_t end) const {
    return !IsAlike() ||
           (costs_.OfStage(0, 0, end) <= s * limit_ && EnoughBehind(s, end));
  }
  bool EnoughBehind(int s, size_t end) const {
    const size_t units = best_.front().size() - 1;
    return costs_.OfStage(0, end, units) <= (costs_.stages() - s) * limit_;
  }

  // On places that are alike, where the last of s stages begins. The later it
  // begins, the longer the stages before it take, and the shorter itself: the
  // costliest is the least where the two meet. Much costlier ones are left out.
  Range RangeOfBest(int s, size_t end) const {
    size_t first = s - 1;  // that may be one of a best cut
    while (first + 1 < end && !EnoughBehind(s - 1, first)) ++first;
    const auto before = [&](size_t begin) { return best_[s - 1][begin].most; };
    const auto own = [&](size_t begin) {
      return costs_.OfStage(s - 1, begin, end);
    };
    // Of [first, end), the first place where something holds from there on.
    const auto find = [&](const auto& holds) {
      size_t low = first;
      size_t high = end;
      while (low < high) {
        const size_t middle = low + (high - low) / 2;
        (holds(middle) ? high : low) = holds(middle) ? middle : middle + 1;
      }
      return low;
    };
    const size_t meet = std::min(end - 1, find([&](size_t begin) {
                                   return before(begin) >= own(begin);
                                 }));
    double least = std::max(before(meet), own(meet));
    if (meet > first) least = std::min(least, own(meet - 1));
    const double most = least * (1 + kMuch);
    return {.begin = find([&](size_t begin) { return own(begin) <= most; }),
            .end = find([&](size_t begin) { return before(begin) > most; })};
  }

  // The last of s stages takes units [begin, end).
  void Extend(int s, size_t end) {
    const Range range = IsAlike() ? RangeOfBest(s, end)
                                  : Range{static_cast<size_t>(s - 1), end};
    for (size_t begin = range.begin; begin < range.end; ++begin) {
      const double cost = costs_.OfStage(s - 1, begin, end);
      const CutCost& before = best_[s - 1][begin];
      const CutCost cut = {
          .lack = before.lack + costs_.LackOf(s - 1, begin, end),
          .most = std::max(before.most, cost),
          .squares = before.squares + cost * cost};
      if (!(cut < best_[s][end])) continue;
      best_[s][end] = cut;
      last_[s][end] = static_cast<int>(end - begin);
    }
  }

  const StageCosts& costs_;
  std::vector<std::vector<CutCost>> best_;
  std::vector<std::vector<int>> last_;  // units of the last stage
  double limit_ = std::numeric_limits<double>::infinity();  // of each stage
};

// Moves units between stages, so that ranks that hold several have even loads,
// and none needs more memory than it has.
class EvenRanks {
 public:
  // Borrows the costs.
  explicit EvenRanks(const StageCosts& costs) : costs_(costs) {}

  Counts From(Counts counts) const {
    while (Improve(counts)) {
    }
    return counts;
  }

 private:
  struct StepCost {
    int64_t lack = 0;
    double seconds = 0;
    // By more than roundings.
    bool operator<(const StepCost& other) const {
      if (lack != other.lack) return lack < other.lack;
      return seconds < other.seconds * (1 - 1e-9);
    }
  };

  // Of each place. Those of a stage that is held twice share its micro-batches.
  struct Load {
    double seconds = 0;
    int64_t bytes = 0;
  };
  std::vector<Load> Loads(const Counts& counts) const {
    std::vector<Load> loads(costs_.places());
    size_t begin = 0;
    for (int s = 0; s < costs_.stages(); ++s) {
      const size_t end = begin + counts[s];
      const std::vector<int>& holders = costs_.layout().holders[s];
      for (const int place : holders) {
        loads[place].seconds +=
            costs_.AtPlace(place, begin, end) / holders.size();
        loads[place].bytes += costs_.BytesOf(s, begin, end);
      }
      begin = end;
    }
    return loads;
  }

  static double Busiest(const std::vector<Load>& loads) {
    double most = 0;
    for (const Load& load : loads) most = std::max(most, load.seconds);
    return most;
  }

  StepCost CostOf(const Counts& counts) const {
    double stage_most = 0;
    size_t begin = 0;
    for (int s = 0; s < costs_.stages(); ++s) {
      const size_t end = begin + counts[s];
      stage_most = std::max(stage_most, costs_.OfStage(s, begin, end));
      begin = end;
    }
    const std::vector<Load> loads = Loads(counts);
    StepCost step = {.seconds = costs_.layout().micro_batches * Busiest(loads) +
                                (costs_.places() - 1) * stage_most};
    for (int p = 0; p < costs_.places(); ++p) step.lack += LackAt(p, loads[p]);
    return step;
  }

  int64_t LackAt(int place, const Load& load) const {
    const auto& memory = costs_.layout().memory;
    if (!memory.has_value()) return 0;
    return std::max<int64_t>(0, load.bytes - memory->room[place]);
  }

  // Places that a move may relieve: the busiest, and those that lack memory.
  std::vector<bool> Burdened(const std::vector<Load>& loads) const {
    std::vector<bool> burdened(loads.size());
    const double most = Busiest(loads);
    bool first = true;
    for (size_t p = 0; p < loads.size(); ++p) {
      const bool busiest = first && loads[p].seconds == most;
      if (busiest) first = false;
      burdened[p] = busiest || LackAt(static_cast<int>(p), loads[p]) > 0;
    }
    return burdened;
  }

  // The best move of one unit away from such a place, if that helps.
  bool Improve(Counts& counts) const {
    const std::vector<bool> burdened = Burdened(Loads(counts));
    const StepCost now = CostOf(counts);
    StepCost best_step = now;
    Counts best;
    for (int from = 0; from < costs_.stages(); ++from) {
      const std::vector<int>& holders = costs_.layout().holders[from];
      if (counts[from] == 1) continue;
      if (std::none_of(holders.begin(), holders.end(),
                       [&](int place) { return burdened[place]; })) {
        continue;
      }
      for (int to = 0; to < costs_.stages(); ++to) {
        Counts moved = counts;
        --moved[from];
        ++moved[to];
        const StepCost step = CostOf(moved);
        const bool better = best.empty()
                                ? step < now
                                : step.lack < best_step.lack ||
                                      (step.lack == best_step.lack &&
                                       step.seconds < best_step.seconds);
        if (!better) continue;
        best_step = step;
        best = std::move(moved);
      }
    }
    if (best.empty()) return false;
    counts = std::move(best);
    return true;
  }

  const StageCosts& costs_;
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
    const StageCosts costs(units, layout);
    counts = EvenRanks(costs).From(Cuts(costs, units.size()).Cheapest());
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
