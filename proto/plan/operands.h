// How UnitBuilder writes operands down. Only its sources read this.
#ifndef TROUPE_PROTO_PLAN_OPERANDS_H_
#define TROUPE_PROTO_PLAN_OPERANDS_H_

#include "proto/base/check.h"
#include "proto/unit.pb.h"

namespace troupe {

inline Dim ColumnDimOf(const TensorSpec& tensor) {
  return tensor.dims(tensor.dims_size() - 1);
}

// CHECKs that there is a tensor.
inline void AddInput(Op& op, const char* name, int tensor) {
  CHECK_GE(tensor, 0) << name;
  Op::Operand& input = *op.add_inputs();
  input.set_name(name);
  input.set_tensor(tensor);
}

inline void AddOutput(Op& op, const char* name, int tensor) {
  Op::Operand& output = *op.add_outputs();
  output.set_name(name);
  output.set_tensor(tensor);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPERANDS_H_
