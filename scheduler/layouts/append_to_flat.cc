#include "scheduler/layouts/append_to_flat.h"

#include "proto/plan/slices.h"
#include "proto/plan/unit_builder.h"

namespace troupe {

int64_t AppendToFlat(const std::vector<int>& parameters, Unit& unit) {
  const int64_t begin = unit.flat_elements();
  for (const int p : parameters) {
    Parameter& parameter = *unit.mutable_parameters(p);
    parameter.set_offset(unit.flat_elements());
    unit.set_flat_elements(unit.flat_elements() +
                           FlatAligned(LocalElements(parameter)));
  }
  return unit.flat_elements() - begin;
}

}  // namespace troupe
