#include "proto/plan/sums.h"

#include <string>

#include "proto/base/check.h"

namespace troupe {

Sums FirstSums() {
  Sums sums;
  const auto add = [&sums](const char* name, Instruction::Kind added_by) {
    Sum& sum = *sums.Add();
    sum.set_name(name);
    sum.set_elements(1);
    sum.set_added_by(added_by);
  };
  add(kLossSum, Instruction::FORWARD);
  add(kTokensSum, Instruction::FORWARD);
  add(kSquaredNormSum, Instruction::GRAD_NORM);
  add(kStopSum, Instruction::REDUCE_SCALARS);
  add(kSaveSum, Instruction::REDUCE_SCALARS);
  return sums;
}

absl::optional<SumPlace> FindSum(const Sums& sums, absl::string_view name,
                                 absl::optional<int> unit) {
  int64_t first = 0;
  for (const Sum& sum : sums) {
    const bool same_unit = unit.has_value()
                               ? sum.has_unit() && sum.unit() == *unit
                               : !sum.has_unit();
    if (same_unit && sum.name() == name) {
      return SumPlace{.first = first, .elements = sum.elements()};
    }
    first += sum.elements();
  }
  return absl::nullopt;
}

SumPlace PlaceOfSum(const Plan& plan, absl::string_view name,
                    absl::optional<int> unit) {
  const absl::optional<SumPlace> place = FindSum(plan.sums(), name, unit);
  CHECK(place.has_value()) << "the plan has no sum \"" << name << "\""
                           << (unit.has_value() ? " of unit " : "")
                           << (unit.has_value() ? std::to_string(*unit) : "");
  return *place;
}

bool IsOfSequences(const Sum& sum) {
  return sum.name() == kSequenceLossesSum || sum.name() == kSequenceTokensSum;
}

Sums ReportedSums(const Sums& sums) {
  Sums reported;
  for (const Sum& sum : sums) {
    if (!IsOfSequences(sum)) *reported.Add() = sum;
  }
  return reported;
}

int64_t SumElements(const Sums& sums) {
  int64_t elements = 0;
  for (const Sum& sum : sums) elements += sum.elements();
  return elements;
}

int64_t SumsBytes(const Plan& plan) {
  return SumElements(plan.sums()) * int64_t{sizeof(double)};
}

}  // namespace troupe
