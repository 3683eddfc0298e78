// The parameters that an op uses: of its unit, or of one that it is tied to.
#ifndef TROUPE_PROTO_PLAN_PARAMETER_OF_H_
#define TROUPE_PROTO_PLAN_PARAMETER_OF_H_

#include <vector>

#include "proto/base/check.h"
#include "proto/unit.pb.h"

namespace troupe {

// Which unit's it is: `unit`'s own, or the one that it is tied to.
inline bool IsTied(const Unit& unit, int parameter) {
  return parameter >= unit.parameters_size();
}

// Op.parameters numbers the unit's parameters, and behind them its tied ones.
// `units`: all of the model, a container of Unit. REQUIRES that it is there.
template <typename Units>
const Parameter& ParameterOf(const Units& units, const Unit& unit,
                             int parameter) {
  if (!IsTied(unit, parameter)) return unit.parameters(parameter);
  const Unit::Tied& tied = unit.tied(parameter - unit.parameters_size());
  for (const Parameter& other : units[tied.unit()].parameters()) {
    if (other.name() == tied.parameter()) return other;
  }
  CHECK(false) << "unit " << tied.unit() << " has no " << tied.parameter();
  return unit.parameters(0);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PARAMETER_OF_H_
