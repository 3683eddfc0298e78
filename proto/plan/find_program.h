// What a role's programs are: that of one kind, that of a step, and whether any
// loads data.
#ifndef TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
#define TROUPE_PROTO_PLAN_FIND_PROGRAM_H_

#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Null where the role has none. It has one of a kind at most (check_program).
const Program* FindProgram(const Role& role, Program::Kind kind);
Program* FindProgram(Role& role, Program::Kind kind);

// The program of a step: TRAIN, or VALIDATE where the job evaluates, which has
// no TRAIN. Null where the role has neither.
const Program* StepProgram(const Role& role);
// Its kind.
Program::Kind StepKind(const JobSpec& job);

// Whether its ranks load data: some do not have it.
bool LoadsData(const Role& role);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FIND_PROGRAM_H_
