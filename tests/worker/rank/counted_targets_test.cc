#include "worker/rank/counted_targets.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {
namespace {

// Documents of 5 tokens in windows of 10: each window has two ends.
std::string DocumentsOfFive() {
  const std::string path = testing::TempDir() + "/counted_targets.tokens";
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = 61, .tokenizer = "bytes"});
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < 41; ++i) {
    EXPECT_TRUE((*writer)->Append(std::vector<int32_t>(5, 7)).ok());
    EXPECT_TRUE((*writer)->EndDocument().ok());
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return path;
}

JobSpec Job(bool isolates) {
  JobSpec job;
  job.mutable_data()->set_isolate_documents(isolates);
  job.mutable_training()->set_global_batch_size(4);
  job.mutable_training()->set_sequence_length(10);
  return job;
}

TEST(CountedTargets, AreThoseOfTheStepsSamples) {
  const auto data = SampleReader::Create({.sources = {{DocumentsOfFive()}},
                                          .sequence_length = 10,
                                          .isolate_documents = true});
  ASSERT_TRUE(data.ok()) << data.status();
  CountedTargets counted;
  for (int round = 0; round < 2; ++round) {  // and as it remembers
    for (int64_t step = 0; step < 12; ++step) {
      EXPECT_EQ(counted.Of(Job(true), &*data, 4 * step).value(), 4 * 8);
    }
  }
  EXPECT_EQ(counted.Of(Job(false), &*data, 0).value(), 40);
  EXPECT_EQ(counted.Of(Job(true), nullptr, 0).value(), 40);
}

}  // namespace
}  // namespace troupe
