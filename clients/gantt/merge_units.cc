#include "clients/gantt/merge_units.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "clients/gantt/bar_kind.h"

namespace troupe {
namespace {

int StageOf(int unit, const std::vector<Stage>& stages) {
  int stage = -1;
  for (const Stage& candidate : stages) stage += candidate.unit() <= unit;
  return stage;
}

class Merging {
 public:
  Merging(const std::vector<PlacedSpan>& spans, const MergeOptions& options)
      : spans_(spans), options_(options) {}

  // Whether one pass over a stage, or one step, goes on from `a` to `b`.
  bool GoesOn(int a, int b) const {
    const Span& first = *spans_[a].span;
    const Span& second = *spans_[b].span;
    if (spans_[b].start_ns - spans_[a].end_ns > options_.gap_ns_max) {
      return false;
    }
    const BarKind kind = KindOfBar(a);
    if (kind != KindOfBar(b)) return false;
    if (kind == BarKind::kStep) return true;
    return IsPass(kind) && first.has_micro_batch() &&
           second.has_micro_batch() &&
           first.micro_batch() == second.micro_batch() &&
           first.ahead() == second.ahead() &&
           std::abs(first.unit() - second.unit()) <= 1 &&
           StageOf(first.unit(), options_.stages) ==
               StageOf(second.unit(), options_.stages);
  }

  // Whether backward is over with one unit before it goes to the next.
  bool Alternates(const std::vector<int>& bar) const {
    for (size_t i = 1; i < bar.size(); ++i) {
      if (IsWeight(bar[i - 1]) && !IsWeight(bar[i])) return true;
    }
    return false;
  }

  // Into the part before the weights and theirs.
  std::vector<std::vector<int>> Split(const std::vector<int>& bar) const {
    const auto weights = std::find_if(bar.begin(), bar.end(),
                                      [this](int i) { return IsWeight(i); });
    if (weights == bar.begin() || weights == bar.end()) return {bar};
    return {{bar.begin(), weights}, {weights, bar.end()}};
  }

 private:
  BarKind KindOfBar(int span) const {
    const BarKind kind = KindOf(spans_[span].span->kind());
    const bool backward =
        kind == BarKind::kRecompute || kind == BarKind::kBackwardWeight;
    return backward ? BarKind::kBackwardInput : kind;
  }
  bool IsWeight(int span) const {
    return spans_[span].span->kind() == Instruction::BACKWARD_WEIGHT;
  }

  const std::vector<PlacedSpan>& spans_;
  const MergeOptions& options_;
};

}  // namespace

std::vector<std::vector<int>> MergeUnits(const std::vector<PlacedSpan>& spans,
                                         const std::vector<int>& lane,
                                         const MergeOptions& options) {
  const Merging merging(spans, options);
  std::vector<std::vector<int>> merged;
  for (const int i : lane) {
    if (merged.empty() || !merging.GoesOn(merged.back().back(), i)) {
      merged.emplace_back();
    }
    merged.back().push_back(i);
  }
  // All bars of a lane alike, also those of stages with one unit.
  const bool alternates = std::any_of(
      merged.begin(), merged.end(),
      [&](const std::vector<int>& bar) { return merging.Alternates(bar); });
  if (alternates) return merged;
  std::vector<std::vector<int>> bars;
  for (const std::vector<int>& bar : merged) {
    for (std::vector<int>& part : merging.Split(bar)) {
      bars.push_back(std::move(part));
    }
  }
  return bars;
}

}  // namespace troupe
