#include "scheduler/layouts/axis_rules.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "proto/plan/axes.h"
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
                      .size = SizeOfAxis(parallelism, row.axis)});
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
  std::map<Dim::Kind, int64_t> counts = whole;
  std::string by;  // the axes before
  for (const AxisRules& axis : axes) {
    const auto misfit = [&](int size) -> const DimRule* {
      for (const DimRule& rule : axis.rules) {
        const auto found = counts.find(rule.kind);
        if (found == counts.end()) continue;
        if (!Fits(rule, found->second, size)) return &rule;
      }
      return nullptr;
    };
    if (const DimRule* const rule = misfit(axis.size)) {
      const int64_t count = counts[rule->kind];
      const int64_t all = whole.at(rule->kind);
      int below = axis.size;
      while (misfit(below) != nullptr) --below;  // 1 fits
      int above = axis.size;
      while (above <= count && misfit(above) != nullptr) ++above;
      const std::string what =
          count == all ? absl::StrCat(count, " (", rule->field, ")")
                       : absl::StrCat("the ", count, " of ", all, " (",
                                      rule->field, ") that ", by, " leaves");
      return FieldError(
          absl::StrCat("parallelism.", axis.axis),
          absl::StrCat(axis.size, " ranks cannot share ", what, " evenly",
                       rule->zigzag ? ", two pieces each" : "", "; use ", below,
                       above <= count ? absl::StrCat(" or ", above) : ""));
    }
    for (const DimRule& rule : axis.rules) {
      const auto found = counts.find(rule.kind);
      if (found == counts.end()) continue;
      found->second = LargestPiece(found->second, axis.size);
    }
    absl::StrAppend(&by, by.empty() ? "" : " x ", "parallelism.", axis.axis,
                    ": ", axis.size);
  }
  return absl::OkStatus();
}

}  // namespace troupe
