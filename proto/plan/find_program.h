// What a rank's programs are: that of one kind, and whether any loads data.
#ifndef TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
#define TROUPE_PROTO_PLAN_FIND_PROGRAM_H_

#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Null where the rank has none. It has one of a kind at most (check_program).
const Program* FindProgram(const RankPlan& rank, Program::Kind kind);
Program* FindProgram(RankPlan& rank, Program::Kind kind);

// Whether a rank loads data: some do not have it.
bool LoadsData(const RankPlan& rank);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
