#include "worker/rank/counted_targets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  EXPECT_EQ(counted.Of(Job(true), nullptr, 0).value(), 40);
  const auto together = SampleReader::Create(
      {.sources = {{DocumentsOfFive()}}, .sequence_length = 10});
  ASSERT_TRUE(together.ok()) << together.status();
  EXPECT_EQ(CountedTargets().Of(Job(false), &*together, 0).value(), 40);
}

// Records of ten tokens, of which one in four has a token that counts.
TEST(CountedTargets, AreThoseThatCountAndOneAtLeast) {
  const std::string path = testing::TempDir() + "/records.tokens";
  auto writer = TokenFileWriter::Create({.path = path,
                                         .vocab_size = 61,
                                         .tokenizer = "bytes",
                                         .says_what_counts = true,
                                         .packed_length = 10});
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < 40; ++i) {
    std::vector<uint8_t> counts(10, 0);
    if (i % 4 == 0) counts[5] = 1;
    ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(10, i), counts).ok());
    ASSERT_TRUE((*writer)->EndDocument().ok());
  }
  ASSERT_TRUE((*writer)->Append({0}, {0}).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto data =
      SampleReader::Create({.sources = {{path}}, .sequence_length = 10});
  ASSERT_TRUE(data.ok()) << data.status();
  CountedTargets counted;
  int64_t all = 0, without = 0;
  for (int64_t step = 0; step < 10; ++step) {
    const int64_t there = data->CountTargets(4 * step, 4).value();
    testing::internal::CaptureStderr();
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(counted.Of(Job(false), &*data, 4 * step).value(),
                std::max<int64_t>(there, 1));
    }
    const std::string log = testing::internal::GetCapturedStderr();
    const std::string samples =
        absl::StrCat("samples ", 4 * step, " to ", 4 * step + 3);
    EXPECT_EQ(absl::StrContains(log, "no token counts"), there == 0) << log;
    EXPECT_EQ(absl::StrContains(log, samples), there == 0) << log;
    EXPECT_EQ(log.find(samples), log.rfind(samples)) << "once: " << log;
    all += there;
    without += there == 0;
  }
  EXPECT_EQ(all, 10);
  EXPECT_GT(without, 0) << "no step without any: another seed is needed";
}

}  // namespace
}  // namespace troupe
