// What a role's programs are: that of one kind, and whether any loads data.
#ifndef TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
#define TROUPE_PROTO_PLAN_FIND_PROGRAM_H_

#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Null where the role has none. It has one of a kind at most (check_program).
const Program* FindProgram(const Role& role, Program::Kind kind);
Program* FindProgram(Role& role, Program::Kind kind);

// Whether its ranks load data: some do not have it.
bool LoadsData(const Role& role);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
