// Plans of the example job, whole and half-made, for tests that look at them or
// break them.
#ifndef TROUPE_TESTS_SCHEDULER_EXAMPLE_PLAN_H_
#define TROUPE_TESTS_SCHEDULER_EXAMPLE_PLAN_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"
#include "scheduler/passes/draft.h"
#include "tests/scheduler/example_job.h"

namespace troupe {

// Compiled and checked. A job that says what rests in which tier has workers
// with as much of each as it takes.
Plan ExamplePlan(const JobSpec& job);

// After the passes up to and including this one; "": before the first.
Draft ExampleDraft(const JobSpec& job, absl::string_view last_pass);

// "L m0 | F u0 m0 | ...", or "" where the rank has no such program.
std::string ProgramWords(const Plan& plan, int rank, Program::Kind kind);

// For tests that break it: of this rank alone, in a role of its own, as all
// have from then on.
Program& ProgramOf(Plan& plan, int rank, Program::Kind kind);

// Where in the program an instruction is, by its short text; CHECKs it is
// there.
int IndexOf(const Program& program, absl::string_view text);

// Takes an instruction out; what waited for it no longer waits.
void Remove(Program& program, int index);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_EXAMPLE_PLAN_H_
