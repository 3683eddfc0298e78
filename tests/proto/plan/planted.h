// What tests that break a plan's tables share: a block's table, its ops by
// kind, their operands by name.
#ifndef TROUPE_TESTS_PROTO_PLAN_PLANTED_H_
#define TROUPE_TESTS_PROTO_PLAN_PLANTED_H_

#include <string>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// A fault, and what the check that finds it says.
struct PlantedFault {
  const char* name;
  void (*plant)(Plan& plan);
  const char* message;
};

// Nothing is wrong with the job's plan, and CheckPrograms names each fault that
// is planted into it.
void ExpectProgramFaultsAreNamed(const JobSpec& job,
                                 absl::Span<const PlantedFault> faults);

inline constexpr int kPlantedUnit = 1;  // the first block

inline UnitTable& TableOf(Plan& plan) {
  return *plan.mutable_tables(plan.units(kPlantedUnit).table());
}

// Where the n-th op of a kind is among the ops.
inline int Nth(Plan& plan, Op::Kind kind, int n) {
  const UnitTable& table = TableOf(plan);
  for (int op = 0; op < table.ops_size(); ++op) {
    if (table.ops(op).kind() == kind && n-- == 0) return op;
  }
  ADD_FAILURE() << "no " << Op::Kind_Name(kind);
  return 0;
}
inline Op& NthOp(Plan& plan, Op::Kind kind, int n) {
  return *TableOf(plan).mutable_ops(Nth(plan, kind, n));
}

inline Op::Operand& InputOf(Op& op, const std::string& name) {
  for (Op::Operand& input : *op.mutable_inputs()) {
    if (input.name() == name) return input;
  }
  ADD_FAILURE() << "no input " << name;
  return *op.mutable_inputs(0);
}

inline TensorSpec& TensorOf(Plan& plan, const Op::Operand& operand) {
  return *TableOf(plan).mutable_tensors(operand.tensor());
}

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_PLANTED_H_
