#include "tests/equivalence/experts_job.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {

JobSpec ExpertsJob(int choices, int positions) {
  JobSpec job = TensorJob({.architecture = "mixtral",
                           .tied = false,
                           .positions = positions,
                           .micro_batch = 1});
  job.mutable_model()->set_num_experts(8);
  job.mutable_model()->set_num_experts_per_tok(choices);
  job.mutable_training()->set_gradient_clipping(0.5);
  return job;
}

void MakeScoresEqual(Plan& plan) {
  int routers = 0;
  for (Unit& unit : *plan.mutable_units()) {
    for (Parameter& parameter : *unit.mutable_parameters()) {
      if (!absl::EndsWith(parameter.name(), ".gate.weight")) continue;
      parameter.set_init(Parameter::ZEROS);
      ++routers;
    }
  }
  CHECK_GT(routers, 0);
}

void ExpectSame(const std::vector<Leg>& legs, const JobSpec& reference) {
  static auto* const references = new ReferenceRuns;
  const auto difference = references->Compare(legs, reference);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_TRUE(difference->IsRounding())
      << "losses " << difference->losses << ", norms " << difference->norms
      << ", weights " << difference->weights;
}

}  // namespace troupe
