// A rank's program of one kind.
#ifndef TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
#define TROUPE_PROTO_PLAN_FIND_PROGRAM_H_

#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Null where the rank has none. It has one of a kind at most (check_program).
const Program* FindProgram(const RankPlan& rank, Program::Kind kind);
Program* FindProgram(RankPlan& rank, Program::Kind kind);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
