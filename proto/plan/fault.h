// How check_program says where a fault is: "rank 1, TRAIN: what", or
// "rank 1, TRAIN: F u0 m2: what".
#ifndef TROUPE_PROTO_PLAN_FAULT_H_
#define TROUPE_PROTO_PLAN_FAULT_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/plan/program_text.h"
#include "proto/program.pb.h"

namespace troupe {

struct ProgramPlace {
  int rank = 0;
  Program::Kind kind = Program::TRAIN;
};

inline absl::Status ProgramFault(const ProgramPlace& place,
                                 absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      "rank ", place.rank, ", ", Program::Kind_Name(place.kind), ": ", what));
}
inline absl::Status ProgramFault(const ProgramPlace& place,
                                 const Instruction& instruction,
                                 absl::string_view what) {
  return ProgramFault(place,
                      absl::StrCat(InstructionText(instruction), ": ", what));
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FAULT_H_
