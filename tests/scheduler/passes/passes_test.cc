#include "scheduler/passes/passes.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/roles.h"
#include "tests/golden/golden.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

TEST(Passes, NamesAreUnique) {
  std::set<std::string> names;
  for (const Pass& pass : Passes()) {
    EXPECT_TRUE(names.emplace(pass.name).second) << pass.name;
  }
}

// Buffers, then instructions, of every program of every role.
std::string AllPrograms(const Plan& plan) {
  std::string text;
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      absl::StrAppend(&text, "# ", RoleText(role), " ",
                      Program::Kind_Name(program.kind()), "\n");
      for (int b = 0; b < program.buffers_size(); ++b) {
        const Buffer& buffer = program.buffers(b);
        absl::StrAppend(
            &text, "# ", b, " ", Buffer::Kind_Name(buffer.kind()),
            buffer.has_unit() ? " u" : "",
            buffer.has_unit() ? absl::StrCat(buffer.unit()) : "",
            buffer.has_micro_batch() ? " m" : "",
            buffer.has_micro_batch() ? absl::StrCat(buffer.micro_batch()) : "",
            " ", buffer.bytes(), " B slot ", buffer.slot(),
            buffer.offset() > 0 ? absl::StrCat(" + ", buffer.offset()) : "",
            "\n");
      }
      absl::StrAppend(&text, ProgramText(program), "\n");
    }
  }
  return text;
}

TEST(Passes, ProgramsAreTheGoldens) {
  for (const int data : {1, 2}) {
    for (const int micro_batches : {1, 3}) {
      JobSpec job = ExampleJob({.data = data, .micro_batches = micro_batches});
      job.mutable_checkpoint()->set_directory("checkpoints");
      job.mutable_data()->set_validation_fraction(0.1);
      job.mutable_training()->set_validate_every(5);
      job.mutable_training()->set_validation_sequences(2 * 2 * data);
      EXPECT_TRUE(MatchesGolden(
          AllPrograms(ExamplePlan(job)),
          absl::StrCat("program_data", data, "_micro", micro_batches, ".txt")));
    }
  }
}

}  // namespace
}  // namespace troupe
