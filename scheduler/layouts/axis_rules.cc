#include "scheduler/layouts/axis_rules.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "proto/plan/fields.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

bool Fits(const DimRule& rule, int64_t count, int size) {
  if (rule.zigzag && size > 1) return count % (2 * size) == 0;
  if (count % size == 0 || (rule.pads && count >= size)) return true;
  return rule.shares && size % count == 0;
}

// Of each kind, how many there are.
std::map<Dim::Kind, int64_t> CountsOf(const UnitList& units) {
  std::map<Dim::Kind, int64_t> counts;
  for (const UnitTable& table : units.tables) {
    for (const TensorSpec& tensor : table.tensors()) {
      for (const Dim& dim : tensor.dims()) {
        for (const Dim::Section& section : dim.sections()) {
          counts[section.kind()] = section.count();
        }
      }
    }
  }
  return counts;
}

// What the cuts before an axis's leave of a dim, and whose these are. Those that
// batches are loaded in come first, the last of them outermost.
struct Left {
  int64_t count = 0;
  std::string by;
};
Left LeftFor(size_t axis, const DimRule& rule,
             const std::vector<AxisRules>& axes, int64_t whole) {
  Left left = {.count = whole};
  for (size_t other = 0; other < axes.size(); ++other) {
    const DimRule* const of_other = RuleOf(axes[other], rule.kind);
    if (other == axis || of_other == nullptr) continue;
    const bool before = of_other->loaded ? !rule.loaded || other > axis
                                         : !rule.loaded && other < axis;
    if (!before) continue;
    left.count = LargestPiece(left.count, axes[other].size);
    absl::StrAppend(&left.by, left.by.empty() ? "" : " x ",
                    axes[other].field.name, ": ",
                    axes[other].size * axes[other].field.ranks);
  }
  return left;
}

}  // namespace

const DimRule* RuleOf(const AxisRules& axis, Dim::Kind kind) {
  for (const DimRule& rule : axis.rules) {
    if (rule.kind == kind) return &rule;
  }
  return nullptr;
}

std::vector<AxisRules> RulesFor(const ParallelismSpec& parallelism) {
  std::vector<AxisRules> axes;
  for (const LayoutRow& row : Layouts()) {
    if (!row.used(parallelism)) continue;
    if (axes.empty() || axes.back().axis != row.axis) {
      axes.push_back({.axis = std::string(row.axis),
                      .size = SizeOfAxis(parallelism, row.axis),
                      .field = SizeFieldOf(parallelism, row.axis)});
    }
    axes.back().rules.insert(axes.back().rules.end(), row.rules.begin(),
                             row.rules.end());
    if (row.rewrite != nullptr) axes.back().rewrites.push_back(row.rewrite);
  }
  return axes;
}

absl::Status CheckCuts(const UnitList& units,
                       const std::vector<AxisRules>& axes) {
  const std::map<Dim::Kind, int64_t> whole = CountsOf(units);
  for (size_t a = 0; a < axes.size(); ++a) {
    const AxisRules& axis = axes[a];
    const auto misfit = [&](int size) -> const DimRule* {
      for (const DimRule& rule : axis.rules) {
        const auto found = whole.find(rule.kind);
        if (found == whole.end()) continue;
        const int64_t left = LeftFor(a, rule, axes, found->second).count;
        if (!Fits(rule, left, size)) return &rule;
      }
      return nullptr;
    };
    const DimRule* const rule = misfit(axis.size);
    if (rule == nullptr) continue;
    const int64_t all = whole.at(rule->kind);
    const auto [left, by] = LeftFor(a, *rule, axes, all);
    int below = axis.size;
    while (misfit(below) != nullptr) --below;  // 1 fits
    int above = axis.size;
    while (above <= left && misfit(above) != nullptr) ++above;
    const std::string what =
        by.empty() ? absl::StrCat(all, " (", rule->field, ")")
                   : absl::StrCat("the ", left, " of ", all, " (", rule->field,
                                  ") that ", by, " leaves");
    const auto ranks = [&](int size) { return size * axis.field.ranks; };
    return FieldError(
        axis.field.name,
        absl::StrCat(ranks(axis.size), " ranks cannot share ", what, " evenly",
                     rule->zigzag ? ", two pieces each" : "", "; use ",
                     ranks(below),
                     above <= left ? absl::StrCat(" or ", ranks(above)) : ""));
  }
  return absl::OkStatus();
}

}  // namespace troupe
