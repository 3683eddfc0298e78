// Small mixtures of experts, and how runs of them are compared.
#ifndef TROUPE_TESTS_EQUIVALENCE_EXPERTS_JOB_H_
#define TROUPE_TESTS_EQUIVALENCE_EXPERTS_JOB_H_

#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "proto/base/check.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "tests/equivalence/reference_runs.h"

namespace troupe {

// Eight experts in each of two layers, of which a token has `choices`.
JobSpec ExpertsJob(int choices, int positions = 24);

// Of a plan that no rank has yet: all scores of routers are equal at first, so
// that each token goes to the first experts. CHECKs that there are routers.
void MakeScoresEqual(Plan& plan);

// That the legs train the reference's model, to rounding. References are
// trained once.
void ExpectSame(const std::vector<Leg>& legs, const JobSpec& reference);

// In protobuf's text form.
template <typename Message>
void Merge(const std::string& text, Message& message) {
  Message added;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &added)) << text;
  message.MergeFrom(added);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_EXPERTS_JOB_H_
