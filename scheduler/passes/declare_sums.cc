#include "scheduler/passes/declare_sums.h"

#include <map>

#include "proto/base/check.h"

namespace troupe {

void DeclareSums(Draft& draft) {
  Plan& plan = draft.plan;
  const UnitPasses passes(plan);
  *plan.mutable_sums() = FirstSums();
  if (plan.derived().takes_turns()) {
    for (const char* const name : kTurnSums) {
      Sum& sum = *plan.add_sums();
      sum.set_name(name);
      sum.set_elements(1);
      sum.set_added_by(Instruction::ADMIT);
    }
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    const int segments =
        static_cast<int>(passes.Of(u, Instruction::FORWARD).size());
    for (int s = 0; s < segments; ++s) {
      for (const Unit::Addend& addend : passes.SumsOf(u, s)) {
        absl::optional<int> unit;
        if (addend.own()) unit = u;
        const auto known = FindSum(plan.sums(), addend.sum(), unit);
        if (known.has_value()) {
          CHECK_EQ(known->elements, addend.elements())
              << "unit " << u << " adds to the sum " << addend.sum();
          continue;
        }
        Sum& sum = *plan.add_sums();
        sum.set_name(addend.sum());
        if (unit.has_value()) sum.set_unit(*unit);
        sum.set_elements(addend.elements());
        sum.set_added_by(Instruction::FORWARD);
      }
    }
  }
}

std::vector<SumPlace> SumRuns(const Plan& plan, int unit,
                              const std::vector<Unit::Addend>& addends) {
  std::map<int64_t, int64_t> sums;  // first element and how many
  for (const Unit::Addend& addend : addends) {
    absl::optional<int> of;
    if (addend.own()) of = unit;
    const SumPlace place = PlaceOfSum(plan, addend.sum(), of);
    sums[place.first] = place.elements;
  }
  std::vector<SumPlace> runs;
  for (const auto& [first, elements] : sums) {
    if (!runs.empty() && runs.back().first + runs.back().elements == first) {
      runs.back().elements += elements;
    } else {
      runs.push_back({.first = first, .elements = elements});
    }
  }
  return runs;
}

}  // namespace troupe
