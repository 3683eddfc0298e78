#include "clients/job_file/print_job.h"

#include "clients/job_file/job_file.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(PrintJob, WritesAJobFile) {
  JobSpec job;
  job.set_name("a b");
  job.mutable_model()->set_hidden_size(384);
  job.mutable_model()->set_tie_word_embeddings(false);
  job.mutable_optimizer()->add_betas(0.9);
  job.mutable_optimizer()->add_betas(0.95);
  job.mutable_optimizer()->set_eps(1e-8);
  EXPECT_EQ(JobYaml(job),
            "name: \"a b\"\n"
            "model:\n"
            "  hidden_size: 384\n"
            "  tie_word_embeddings: false\n"
            "optimizer:\n"
            "  betas: [0.9, 0.95]\n"
            "  eps: 1e-08\n");
}

TEST(PrintJob, WritesListsOfSections) {
  JobSpec job;
  for (const int stage : {0, 1}) {
    StrategySpec& strategy = *job.mutable_parallelism()->add_strategies();
    strategy.set_stage(stage);
    strategy.set_tensor(2);
  }
  job.mutable_parallelism()->add_strategies();
  EXPECT_EQ(JobYaml(job),
            "parallelism:\n"
            "  strategies:\n"
            "    - stage: 0\n"
            "      tensor: 2\n"
            "    - stage: 1\n"
            "      tensor: 2\n"
            "    - {}\n");
}

TEST(PrintJob, ReadsBackToTheSameJob) {
  for (const char* name :
       {"plain", "true", "12", "nil", "null", "a: b", "\"quoted\" \\", "#x",
        "two\nlines", "-", "1e5", "caf\xc3\xa9", " space "}) {
    JobSpec job;
    job.set_name(name);
    job.mutable_data()->set_tokens("/a/" + std::string(name));
    job.mutable_data()->set_validation_fraction(1.0 / 3);
    job.mutable_training()->set_seed(~uint64_t{0});
    job.mutable_training()->set_steps(1234567890123);
    job.mutable_lr_scheduler()->set_min_lr(0.1 + 0.2);
    const absl::StatusOr<JobFile> back =
        ParseJob({.name = "printed", .folder = "/", .text = JobYaml(job)});
    ASSERT_TRUE(back.ok()) << back.status() << "\n" << JobYaml(job);
    EXPECT_TRUE(
        google::protobuf::util::MessageDifferencer::Equals(back->spec, job))
        << JobYaml(job);
  }
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void AddValue(const FieldDescriptor& field, Message& message) {
  const google::protobuf::Reflection& set = *message.GetReflection();
  const bool repeated = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? set.AddString(&message, &field, "/*.a b")
                      : set.SetString(&message, &field, "/*.a b");
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? set.AddInt32(&message, &field, 3)
                      : set.SetInt32(&message, &field, 3);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? set.AddInt64(&message, &field, 3)
                      : set.SetInt64(&message, &field, 3);
    case FieldDescriptor::CPPTYPE_UINT64:
      return repeated ? set.AddUInt64(&message, &field, 3)
                      : set.SetUInt64(&message, &field, 3);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? set.AddDouble(&message, &field, 0.5)
                      : set.SetDouble(&message, &field, 0.5);
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? set.AddBool(&message, &field, true)
                      : set.SetBool(&message, &field, true);
    default:
      ADD_FAILURE() << "no value for " << field.full_name();
  }
}

// Something in each field, two values in each list.
void Fill(Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.message_type() != nullptr) {
      const google::protobuf::Reflection& set = *message.GetReflection();
      if (field.is_repeated()) {
        for (int n = 0; n < 2; ++n) Fill(*set.AddMessage(&message, &field));
      } else {
        Fill(*set.MutableMessage(&message, &field));
      }
      continue;
    }
    for (int n = 0; n < (field.is_repeated() ? 2 : 1); ++n) {
      AddValue(field, message);
    }
  }
}

TEST(PrintJob, EveryFieldReadsBack) {
  JobSpec job;
  Fill(job);
  const absl::StatusOr<JobFile> back =
      ParseJob({.name = "printed", .folder = "/", .text = JobYaml(job)});
  ASSERT_TRUE(back.ok()) << back.status() << "\n" << JobYaml(job);
  EXPECT_TRUE(
      google::protobuf::util::MessageDifferencer::Equals(back->spec, job))
      << JobYaml(job) << "read back as\n"
      << JobYaml(back->spec);
}

TEST(ShortestDouble, IsShortAndExact) {
  EXPECT_EQ(ShortestDouble(0.0003), "0.0003");
  EXPECT_EQ(ShortestDouble(0.1), "0.1");
  EXPECT_EQ(ShortestDouble(1.0), "1");
  EXPECT_EQ(ShortestDouble(0.1 + 0.2), "0.30000000000000004");
}

}  // namespace
}  // namespace troupe
