#include "tests/proto/plan/planted.h"

#include "gmock/gmock.h"
#include "proto/plan/check_program.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {

void ExpectProgramFaultsAreNamed(const JobSpec& job,
                                 absl::Span<const PlantedFault> faults) {
  EXPECT_EQ(CheckPrograms(ExamplePlan(job)), absl::OkStatus());
  for (const PlantedFault& fault : faults) {
    Plan plan = ExamplePlan(job);
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition)
        << fault.name;
    EXPECT_THAT(std::string(status.message()).substr(0, 400),
                testing::HasSubstr(fault.message))
        << fault.name;
  }
}

}  // namespace troupe
