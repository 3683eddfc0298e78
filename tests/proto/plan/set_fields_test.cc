#include "proto/plan/set_fields.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"
#include "proto/protocol_version.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

JobSpec SomeJob() {
  JobSpec job;
  job.set_name("j");
  job.mutable_training()->set_steps(3);
  job.mutable_model()->set_hidden_size(8);
  return job;
}

TEST(SetFields, NamesAllThatAreSet) {
  EXPECT_THAT(SetFields(SomeJob()),
              ElementsAre("model", "model.hidden_size", "name", "training",
                          "training.steps"));
  EXPECT_THAT(SetFields(JobSpec()), ElementsAre());
}

TEST(CheckFieldsKnown, TakesWhatItKnows) {
  const JobSpec job = SomeJob();
  EXPECT_TRUE(CheckFieldsKnown(job, SetFields(job)).ok());
  EXPECT_TRUE(CheckFieldsKnown(job, {}).ok());
}

TEST(CheckFieldsKnown, RefusesAPathThatItDoesNotKnow) {
  const JobSpec job = SomeJob();
  for (const char* path : {"training.novelties", "novelty", "name.first",
                           "training.", "", "training.steps.of"}) {
    const absl::Status refused = CheckFieldsKnown(job, {"training", path});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << path;
    EXPECT_EQ(refused.message().substr(0, std::string(path).size() + 2),
              std::string(path) + ": ");
  }
  EXPECT_EQ(
      CheckFieldsKnown(job, {"training.novelties"}).message(),
      absl::StrCat("training.novelties: the scheduler's build (", kBuildName,
                   ") does not know this field; leave it out, or have "
                   "the scheduler and the workers run the build of the "
                   "client"));
}

TEST(CheckFieldsKnown, RefusesAFieldOnTheWireThatItDoesNotKnow) {
  JobSpec job = SomeJob();
  google::protobuf::Message* const training = job.mutable_training();
  training->GetReflection()->MutableUnknownFields(training)->AddVarint(9999, 1);
  JobSpec received;
  ASSERT_TRUE(received.ParseFromString(job.SerializeAsString()));
  const absl::Status refused = CheckFieldsKnown(received, {});
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_EQ(refused.message().substr(0, 16), "training.#9999: ");
}

}  // namespace
}  // namespace troupe
