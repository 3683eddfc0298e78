#include "scheduler/layouts/zero.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/fields.h"
#include "proto/plan/mesh.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/replicas.h"

namespace troupe {
namespace {

// Along which ranks are dealt, in the order in which they are.
struct DealtAxis {
  std::string name;
  int ranks = 1;
  std::string text;   // "the 4 ranks of parallelism.context"
  std::string field;  // "the ranks of parallelism.context"
  bool replicas = false;
};
std::vector<DealtAxis> DealtAxes(const ParallelismSpec& parallelism) {
  std::vector<DealtAxis> dealt;
  const std::vector<SharedAxis> axes = SharedAxes(parallelism);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (axis->row->resting != Resting::kDealt) continue;
    const std::string& field = axis->field.name;
    dealt.push_back({.name = axis->name(),
                     .ranks = axis->size,
                     .text = absl::StrCat(
                         "the ", axis->size, " ranks of ",
                         axis->field.ranks > 1 ? "each ring of " : "", field),
                     .field = field});
  }
  const int data = std::max(ReplicasOf(parallelism), 1);
  dealt.push_back(
      {.name = kReplicaAxis,
       .ranks = data,
       .text = absl::StrCat("the ", data, " replicas of parallelism.data"),
       .field = "parallelism.data",
       .replicas = true});
  return dealt;
}

std::vector<const LayoutRow*> RowsThatSlice() {
  std::vector<const LayoutRow*> rows;
  for (const LayoutRow& row : Layouts()) {
    const bool slices = std::any_of(
        row.axes.begin(), row.axes.end(),
        [](const RowAxis& axis) { return axis.resting == Resting::kSliced; });
    if (slices) rows.push_back(&row);
  }
  return rows;
}

// What is wrong with this size; empty: nothing.
std::string MisfitOf(int size, const ParallelismSpec& parallelism) {
  int left = size;
  std::vector<std::string> inner;
  for (const DealtAxis& axis : DealtAxes(parallelism)) {
    if (axis.ranks % left == 0) return "";
    if (left % axis.ranks != 0) {
      const bool divides = left < axis.ranks || axis.replicas;
      const std::string what = absl::StrCat(
          divides ? "does not divide " : "is no multiple of ", axis.text);
      if (inner.empty()) return absl::StrCat(size, " ", what);
      return absl::StrCat(size, " are ", left, " times the ranks of ",
                          absl::StrJoin(inner, " x "), ", which ", what);
    }
    if (axis.ranks > 1) inner.push_back(axis.field);
    left /= axis.ranks;
  }
  return absl::StrCat(size, " are more than hold a unit alike");
}

// By level.
constexpr ZeroRow kZeroRows[] = {
    {},
    {.states = true},
    {.states = true, .gradients = true},
    {.states = true, .gradients = true, .parameters = true},
};

}  // namespace

ZeroRow ZeroRowOf(const ParallelismSpec& parallelism) {
  const bool sliced = SlicedRow(parallelism) != nullptr;
  ZeroRow row = kZeroRows[sliced ? 3 : parallelism.zero()];
  row.gathered_for_each_use =
      row.parameters && parallelism.reshard_after_forward();
  return row;
}

int ZeroLevels() { return static_cast<int>(std::size(kZeroRows)); }

const LayoutRow* SlicedRow(const ParallelismSpec& parallelism) {
  // Asked for each buffer of a plan.
  static const auto* const kSliced =
      new std::vector<const LayoutRow*>(RowsThatSlice());
  for (const LayoutRow* const row : *kSliced) {
    const std::string field(row->field);
    if (RanksOf(parallelism, field) > 1 && &RowOf(parallelism, field) == row) {
      return row;
    }
  }
  return nullptr;
}

int DealtMost(const ParallelismSpec& parallelism) {
  int ranks = 1;
  for (const DealtAxis& axis : DealtAxes(parallelism)) ranks *= axis.ranks;
  return ranks;
}

int PiecesAmongDealt(const ParallelismSpec& parallelism,
                     const Unit::Part& part) {
  int pieces = 1;
  for (const DealtAxis& axis : DealtAxes(parallelism)) {
    int copies = 1;
    for (const Unit::Part::Share& share : part.shares()) {
      if (share.axis() == axis.name) copies = share.copies();
    }
    pieces *= axis.ranks / copies;
  }
  return pieces;
}

int ZeroSizeAlong(absl::string_view axis, const ParallelismSpec& parallelism) {
  for (const SharedAxis& shared : SharedAxes(parallelism)) {
    const bool sliced = shared.row->resting == Resting::kSliced;
    if (sliced && shared.row->name == axis) return shared.size;
  }
  if (parallelism.zero() == 0) return 1;
  int left = parallelism.zero_size();
  for (const DealtAxis& dealt : DealtAxes(parallelism)) {
    const int ranks = std::min(left, dealt.ranks);
    if (axis == dealt.name) return ranks;
    left /= std::max(ranks, 1);
  }
  return 1;
}

std::vector<int> SizesAlong(const FactorSpan& factor, int neighbours) {
  std::vector<int> sizes(factor.axes.size(), 1);
  for (size_t a = sizes.size(); a-- > 0;) {
    sizes[a] = std::gcd(neighbours, factor.axes[a].size());
    if (sizes[a] < factor.axes[a].size()) break;
    neighbours /= sizes[a];
  }
  return sizes;
}

ParallelismSpec DealtWithStrategy(const ParallelismSpec& job,
                                  const StrategySpec& strategy) {
  ParallelismSpec all = WithStrategy(job, strategy);
  if (job.zero_size() == DealtMost(job)) all.set_zero_size(DealtMost(all));
  return all;
}

bool MayDeal(const ParallelismSpec& parallelism) {
  const auto& strategies = parallelism.strategies();
  return DealtMost(parallelism) > 1 ||
         std::any_of(strategies.begin(), strategies.end(),
                     [&](const StrategySpec& strategy) {
                       return DealtMost(WithStrategy(parallelism, strategy)) >
                              1;
                     });
}

absl::Status CheckZeroSize(const ParallelismSpec& parallelism) {
  const auto misfit = [&](int size) { return MisfitOf(size, parallelism); };
  const int size = parallelism.zero_size();
  const std::string wrong = misfit(size);
  if (wrong.empty()) return absl::OkStatus();
  const int most = DealtMost(parallelism);
  int below = std::min(size, most);  // 1 fits, and so do all that there are
  while (!misfit(below).empty()) --below;
  int above = std::min(size, most);
  while (!misfit(above).empty()) ++above;
  return FieldError(
      "parallelism.zero_size",
      absl::StrCat(wrong, "; use ", below,
                   above > below ? absl::StrCat(" or ", above) : ""));
}

}  // namespace troupe
