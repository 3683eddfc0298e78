#include "storage/dataset/sample_reader.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class SampleReaderTest : public ::testing::Test {
 protected:
  // Token i is i, so a sample says where it was read.
  void SetUp() override {
    auto writer = TokenFileWriter::Create(
        {.path = path_, .vocab_size = 1000, .tokenizer = "bytes"});
    CHECK_OK(writer.status());
    std::vector<int32_t> tokens(1000);
    for (int i = 0; i < 1000; ++i) tokens[i] = i;
    CHECK_OK((*writer)->Append(tokens));
    CHECK_OK((*writer)->Finish().status());
  }

  TempDir dir_;
  const std::string path_ = dir_.File("t");
};

TEST_F(SampleReaderTest, TargetsAreTheTokensOnePlaceLater) {
  const auto reader = SampleReader::Create(
      path_, {.sequence_length = 9, .validation_fraction = 0.1, .seed = 5});
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  std::vector<int32_t> tokens(9), targets(9);
  std::set<int32_t> starts;
  const uint64_t windows = reader->order().training_windows();
  for (uint64_t n = 0; n < windows; ++n) {
    ASSERT_TRUE(
        reader->Read(n, {absl::MakeSpan(tokens), absl::MakeSpan(targets)})
            .ok());
    starts.insert(tokens[0]);
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(tokens[i], tokens[0] + i);
      EXPECT_EQ(targets[i], tokens[i] + 1);
      EXPECT_LT(targets[i], 900);
    }
  }
  EXPECT_EQ(starts.size(), windows);
}

TEST_F(SampleReaderTest, ValidationIsTheTailInOrder) {
  const auto reader = SampleReader::Create(
      path_, {.sequence_length = 9, .validation_fraction = 0.1, .seed = 5});
  std::vector<int32_t> tokens(9), targets(9);
  const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
  EXPECT_EQ(reader->order().validation_windows(), 11u);  // (100 - 1) / 9
  for (uint64_t i = 0; i < 11; ++i) {
    ASSERT_TRUE(reader->ReadValidation(i, out).ok());
    EXPECT_EQ(tokens[0], static_cast<int32_t>(900 + 9 * i));
    EXPECT_EQ(targets[8], tokens[0] + 9);
  }
  EXPECT_TRUE(Fails(reader->ReadValidation(11, out),
                    absl::StatusCode::kOutOfRange, {"window 11 of 11"}));
}

TEST_F(SampleReaderTest, SamplesGoOnForManyEpochsButNotForever) {
  const auto reader = SampleReader::Create(path_, {.sequence_length = 999});
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  std::vector<int32_t> tokens(999), targets(999);
  const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
  EXPECT_TRUE(reader->Read(kEpochsMax - 1, out).ok());
  EXPECT_TRUE(Fails(reader->Read(kEpochsMax, out),
                    absl::StatusCode::kOutOfRange, {path_, "2^52 epochs"}));
}

TEST_F(SampleReaderTest, ErrorsNameTheFile) {
  EXPECT_TRUE(
      Fails(SampleReader::Create(path_, {.sequence_length = 1000}).status(),
            absl::StatusCode::kInvalidArgument, {path_, "1001"}));
  EXPECT_TRUE(Fails(
      SampleReader::Create(dir_.File("no"), {.sequence_length = 4}).status(),
      absl::StatusCode::kNotFound, {dir_.File("no")}));
}

}  // namespace
}  // namespace troupe
