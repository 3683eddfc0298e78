// What a unit's table reads of other units and of the batch, and makes for
// others, by number: what it reads is counted in the order of the table,
// outputs in the order in which its ops make them (edges.h).
#ifndef TROUPE_PROTO_PLAN_PORTS_H_
#define TROUPE_PROTO_PLAN_PORTS_H_

#include <vector>

#include "proto/unit.pb.h"

namespace troupe {

// Inputs that a unit has at most, tensors of the batch, and outputs.
inline constexpr int kPortsMax = 8;

// Tensors of this home, as they are counted.
std::vector<int> TensorsOfHome(const UnitTable& table, TensorSpec::Home home);

// Which of the tensors of its home a tensor is.
int PortOf(const UnitTable& table, int tensor);

// The tensor whose memory a value is in where ops hand it on as it is (FORK).
int SameAs(const UnitTable& table, int tensor);

// Of each output of a table, the first one that is the same value.
std::vector<int> ValuesOfOutputs(const UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PORTS_H_
