// The sums of a plan of these units.
#ifndef TROUPE_TESTS_WORKER_MODEL_UNIT_SUMS_H_
#define TROUPE_TESTS_WORKER_MODEL_UNIT_SUMS_H_

#include "absl/types/optional.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/sums.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Those that the ops of a unit add to, behind what is there.
inline void AddSums(const UnitTable& table, int index, Sums& sums) {
  for (const Op& op : table.ops()) {
    for (const SumRule& rule : RulesOf({table, op}).sums) {
      const auto unit = rule.own ? absl::optional<int>(index) : absl::nullopt;
      if (FindSum(sums, rule.name, unit).has_value()) continue;
      Sum& sum = *sums.Add();
      sum.set_name(rule.name);
      if (unit.has_value()) sum.set_unit(*unit);
      sum.set_elements(rule.elements);
      sum.set_added_by(Instruction::FORWARD);
    }
  }
}

// Of every plan, then what ops add to, as the pass `declare sums` lists them.
inline Sums SumsOf(const UnitList& list) {
  Sums sums = FirstSums();
  for (size_t u = 0; u < list.units.size(); ++u) {
    AddSums(list.tables[list.units[u].table()], static_cast<int>(u), sums);
  }
  return sums;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_MODEL_UNIT_SUMS_H_
