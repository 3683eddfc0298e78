#include "storage/dataset/sample_reader.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
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
  void SetUp() override { Write("t", 0, 1000); }

  // Tokens from `first` on.
  std::string Write(const std::string& name, int32_t first, int32_t count,
                    const std::string& tokenizer = "bytes") {
    auto writer = TokenFileWriter::Create({.path = dir_.File(name),
                                           .vocab_size = 100'000,
                                           .tokenizer = tokenizer});
    CHECK_OK(writer.status());
    std::vector<int32_t> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    CHECK_OK((*writer)->Append(tokens));
    CHECK_OK((*writer)->Finish().status());
    return dir_.File(name);
  }

  // The first token of each sample, of training or validation.
  std::vector<int32_t> Starts(const SampleReader& reader, uint64_t samples,
                              size_t length, bool validation = false) {
    std::vector<int32_t> tokens(length), targets(length), starts;
    const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
    for (uint64_t n = 0; n < samples; ++n) {
      CHECK_OK(validation ? reader.ReadValidation(n, out)
                          : reader.Read(n, out));
      starts.push_back(tokens[0]);
    }
    return starts;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("t");
};

TEST_F(SampleReaderTest, TargetsAreTheTokensOnePlaceLater) {
  const auto reader = SampleReader::Create({.sources = {{path_}},
                                            .sequence_length = 9,
                                            .validation_fraction = 0.1,
                                            .seed = 5});
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  std::vector<int32_t> tokens(9), targets(9);
  std::set<int32_t> starts;
  const uint64_t windows = reader->training_windows();
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
  const auto reader = SampleReader::Create({.sources = {{path_}},
                                            .sequence_length = 9,
                                            .validation_fraction = 0.1,
                                            .seed = 5});
  std::vector<int32_t> tokens(9), targets(9);
  const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
  EXPECT_EQ(reader->validation_windows(), 11u);  // (100 - 1) / 9
  for (uint64_t i = 0; i < 11; ++i) {
    ASSERT_TRUE(reader->ReadValidation(i, out).ok());
    EXPECT_EQ(tokens[0], static_cast<int32_t>(900 + 9 * i));
    EXPECT_EQ(targets[8], tokens[0] + 9);
  }
  EXPECT_TRUE(Fails(reader->ReadValidation(11, out),
                    absl::StatusCode::kOutOfRange, {"window 11 of 11"}));
}

TEST_F(SampleReaderTest, SamplesGoOnForManyEpochsButNotForever) {
  const auto reader =
      SampleReader::Create({.sources = {{path_}}, .sequence_length = 999});
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  std::vector<int32_t> tokens(999), targets(999);
  const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
  EXPECT_TRUE(reader->Read(kEpochsMax - 1, out).ok());
  EXPECT_TRUE(Fails(reader->Read(kEpochsMax, out),
                    absl::StatusCode::kOutOfRange, {path_, "2^52 epochs"}));
}

TEST_F(SampleReaderTest, ErrorsNameTheFile) {
  EXPECT_TRUE(Fails(
      SampleReader::Create({.sources = {{path_}}, .sequence_length = 1000})
          .status(),
      absl::StatusCode::kInvalidArgument, {path_, "1001"}));
  EXPECT_TRUE(Fails(SampleReader::Create(
                        {.sources = {{dir_.File("no")}}, .sequence_length = 4})
                        .status(),
                    absl::StatusCode::kNotFound, {dir_.File("no")}));
}

TEST_F(SampleReaderTest, AMixReadsEachSourceInItsOwnOrder) {
  const std::string a = Write("a", 10'000, 101);  // 10 windows
  const std::string b = Write("b", 20'000, 251);  // 25 windows
  const auto alone = SampleReader::Create(
      {.sources = {{a}}, .sequence_length = 10, .seed = 3});
  const auto mix = SampleReader::Create(
      {.sources = {{a, 0.3}, {b, 0.7}}, .sequence_length = 10, .seed = 3});
  ASSERT_TRUE(mix.ok()) << mix.status();
  EXPECT_EQ(mix->training_windows(), 35u);
  std::vector<int32_t> of_a, of_b;
  for (const int32_t start : Starts(*mix, 200, 10)) {
    (start < 20'000 ? of_a : of_b).push_back(start);
  }
  EXPECT_EQ(of_a.size(), 60u);
  EXPECT_EQ(of_a, Starts(*alone, 60, 10)) << "the first as if it were alone";
  // Each epoch has every window once, in another order.
  std::vector<std::vector<int32_t>> epochs;
  for (size_t at = 0; at + 25 <= of_b.size(); at += 25) {
    epochs.emplace_back(of_b.begin() + at, of_b.begin() + at + 25);
    EXPECT_EQ(
        std::set<int32_t>(epochs.back().begin(), epochs.back().end()).size(),
        25u);
  }
  ASSERT_EQ(epochs.size(), 5u);
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST_F(SampleReaderTest, ValidationMayBeOfAnotherFileOrOfBlocks) {
  const std::string v = Write("v", 50'000, 41);
  const auto apart = SampleReader::Create(
      {.sources = {{path_}}, .validation = v, .sequence_length = 10});
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->training_windows(), 99u) << "nothing is held back";
  EXPECT_EQ(apart->validation_windows(), 4u);
  EXPECT_EQ(Starts(*apart, 4, 10, /*validation=*/true),
            (std::vector<int32_t>{50'000, 50'010, 50'020, 50'030}));
  EXPECT_EQ(apart->files().size(), 2u);

  const SampleReaderOptions blocks = {.sources = {{path_}},
                                      .sequence_length = 10,
                                      .validation_fraction = 0.2,
                                      .validation_blocks = 4};
  const auto spread = SampleReader::Create(blocks);
  ASSERT_TRUE(spread.ok()) << spread.status();
  // Parts of 250 tokens, of which 200 train and 50 validate.
  EXPECT_EQ(spread->training_windows(), 4u * 19);
  ASSERT_EQ(spread->validation_windows(), 4u * 4);
  EXPECT_EQ(Starts(*spread, 5, 10, /*validation=*/true),
            (std::vector<int32_t>{200, 450, 700, 950, 210}));
  for (const int32_t start : Starts(*spread, 4 * 19, 10)) {
    EXPECT_LT(start % 250 + 10, 200) << "with its last target";
  }
  // The order is another one, which a checkpoint has to notice.
  SampleReaderOptions tail = blocks;
  tail.validation_blocks = 1;
  const auto tailed = SampleReader::Create(tail);
  EXPECT_EQ(tailed->identity(), apart->identity());
  EXPECT_NE(spread->identity(), tailed->identity());
}

TEST_F(SampleReaderTest, MayValidateWithoutAnythingToTrainOn) {
  const std::string v = Write("v", 50'000, 41);
  const auto reader = SampleReader::Create(
      {.sources = {}, .validation = v, .sequence_length = 10});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->training_windows(), 0u);
  ASSERT_EQ(reader->validation_windows(), 4u);
  EXPECT_EQ(Starts(*reader, 4, 10, /*validation=*/true),
            (std::vector<int32_t>{50'000, 50'010, 50'020, 50'030}));
  ASSERT_EQ(reader->files().size(), 1u);
  EXPECT_EQ(reader->identity(), reader->files()[0]->identity());
  EXPECT_EQ(reader->tokenizer(), "bytes");
  const auto nothing =
      SampleReader::Create({.sources = {}, .sequence_length = 10});
  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SampleReaderTest, FilesOfAMixAreOfOneTokenizer) {
  const std::string other = Write("o", 0, 100, "hf:1a2b3c4d:5");
  EXPECT_TRUE(Fails(SampleReader::Create(
                        {.sources = {{path_}, {other}}, .sequence_length = 10})
                        .status(),
                    absl::StatusCode::kInvalidArgument,
                    {other, "made by hf:1a2b3c4d:5", "by bytes"}));
}

// Documents of these many tokens, one after the other.
std::string WriteDocuments(const std::string& path,
                           const std::vector<int32_t>& lengths) {
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = 100'000, .tokenizer = "bytes"});
  CHECK_OK(writer.status());
  int32_t next = 0;
  for (const int32_t length : lengths) {
    std::vector<int32_t> tokens(length);
    std::iota(tokens.begin(), tokens.end(), next);
    next += length;
    CHECK_OK((*writer)->Append(tokens));
    CHECK_OK((*writer)->EndDocument());
  }
  CHECK_OK((*writer)->Finish().status());
  return path;
}

TEST_F(SampleReaderTest, SaysWhereDocumentsBeginAndPredictsNoneFromAnother) {
  // Windows of ten: [0, 10), [10, 20), [20, 30), of documents that end behind
  // tokens 3, 4, 10, 25 and 31.
  const std::string path = WriteDocuments(dir_.File("d"), {3, 1, 6, 15, 6});
  const auto reader = SampleReader::Create({.sources = {{path}},
                                            .validation = path,
                                            .sequence_length = 10,
                                            .isolate_documents = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<int32_t> tokens(10), targets(10), documents(10);
  const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets),
                         absl::MakeSpan(documents)};
  ASSERT_TRUE(reader->ReadValidation(0, out).ok());
  EXPECT_EQ(targets, (std::vector<int32_t>{1, 2, -1, -1, 5, 6, 7, 8, 9, -1}));
  EXPECT_EQ(documents, (std::vector<int32_t>{0, 0, 0, 3, 4, 4, 4, 4, 4, 4}));
  // A document that the window cuts is one of its own from there on.
  ASSERT_TRUE(reader->ReadValidation(1, out).ok());
  EXPECT_EQ(targets,
            (std::vector<int32_t>{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  EXPECT_EQ(documents, std::vector<int32_t>(10, 0));
  ASSERT_TRUE(reader->ReadValidation(2, out).ok());
  EXPECT_EQ(targets,
            (std::vector<int32_t>{21, 22, 23, 24, -1, 26, 27, 28, 29, 30}));
  EXPECT_EQ(documents, (std::vector<int32_t>{0, 0, 0, 0, 0, 5, 5, 5, 5, 5}));
  // An epoch, and two.
  EXPECT_EQ(reader->CountTargets(0, 3).value(), 30 - 4);
  EXPECT_EQ(reader->CountTargets(0, 6).value(), 60 - 8);
  for (uint64_t n = 0; n < 3; ++n) {
    ASSERT_TRUE(reader->Read(n, out).ok());
    EXPECT_EQ(reader->CountTargets(n, 1).value(),
              10 - std::count(targets.begin(), targets.end(), -1));
  }
}

TEST_F(SampleReaderTest, WithoutIsolationEveryTargetCounts) {
  const std::string path = WriteDocuments(dir_.File("d"), {3, 1, 6, 15, 6});
  const auto reader =
      SampleReader::Create({.sources = {{path}}, .sequence_length = 10});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->CountTargets(0, 3).value(), 30);
}

TEST_F(SampleReaderTest, IsolatesDocumentsOfEachSourceOfAMix) {
  const std::string a = WriteDocuments(dir_.File("a"), {31});
  const std::string b =
      WriteDocuments(dir_.File("b"), std::vector<int32_t>(31, 1));
  const auto reader = SampleReader::Create({.sources = {{a, 1}, {b, 1}},
                                            .sequence_length = 10,
                                            .isolate_documents = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  // Of two samples one is of each: all of a's targets count, none of b's.
  EXPECT_EQ(reader->CountTargets(0, 2).value(), 10);
}

// Records of these lengths; of each the tokens from number `prompt` on count.
struct Record {
  int32_t tokens = 0;
  int32_t prompt = 0;
};
std::string WriteRecords(const std::string& path,
                         const std::vector<Record>& records,
                         uint64_t packed_length = 0) {
  auto writer = TokenFileWriter::Create({.path = path,
                                         .vocab_size = 100'000,
                                         .tokenizer = "bytes",
                                         .says_what_counts = true,
                                         .packed_length = packed_length});
  CHECK_OK(writer.status());
  int32_t next = 0;
  for (const Record& record : records) {
    std::vector<int32_t> tokens(record.tokens);
    std::iota(tokens.begin(), tokens.end(), next);
    next += record.tokens;
    std::vector<uint8_t> counts(record.tokens, 0);
    for (int32_t i = record.prompt; i < record.tokens; ++i) counts[i] = 1;
    CHECK_OK((*writer)->Append(tokens, counts));
    CHECK_OK((*writer)->EndDocument());
  }
  CHECK_OK((*writer)->Finish().status());
  return path;
}

TEST_F(SampleReaderTest, LeavesOutTargetsThatDoNotCount) {
  const std::string path = WriteRecords(
      dir_.File("r"), {{4, 2}, {5, 0}, {1, 0}, {3, 3}, {8, 1}, {10, 9}});
  for (const bool isolates : {false, true}) {
    const auto reader = SampleReader::Create({.validation = path,
                                              .sequence_length = 10,
                                              .isolate_documents = isolates});
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::vector<int32_t> tokens(10), targets(10);
    const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
    ASSERT_TRUE(reader->ReadValidation(0, out).ok());
    // The first token of a record is nobody's target.
    EXPECT_EQ(targets,
              (std::vector<int32_t>{-1, 2, 3, -1, 5, 6, 7, 8, -1, -1}));
    ASSERT_TRUE(reader->ReadValidation(1, out).ok());
    EXPECT_EQ(targets,
              (std::vector<int32_t>{-1, -1, -1, 14, 15, 16, 17, 18, 19, 20}));
    ASSERT_TRUE(reader->ReadValidation(2, out).ok());
    EXPECT_EQ(targets,
              (std::vector<int32_t>{-1, -1, -1, -1, -1, -1, -1, -1, -1, 30}));
  }
}

TEST_F(SampleReaderTest, CountsWhatItReads) {
  const std::string records = WriteRecords(
      dir_.File("r"), {{4, 2}, {5, 0}, {1, 0}, {3, 3}, {8, 1}, {12, 11}});
  const std::string texts = WriteDocuments(dir_.File("d"), {3, 1, 6, 15, 6});
  for (const bool isolates : {false, true}) {
    const auto reader =
        SampleReader::Create({.sources = {{records, 1}, {texts, 1}},
                              .sequence_length = 10,
                              .isolate_documents = isolates});
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_FALSE(reader->counts_all_targets());
    std::vector<int32_t> tokens(10), targets(10);
    const SampleOut out = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
    for (uint64_t n = 0; n < 24; ++n) {
      ASSERT_TRUE(reader->Read(n, out).ok());
      EXPECT_EQ(reader->CountTargets(n, 1).value(),
                10 - std::count(targets.begin(), targets.end(), -1))
          << n;
    }
  }
  const auto all =
      SampleReader::Create({.sources = {{texts}}, .sequence_length = 10});
  EXPECT_TRUE(all->counts_all_targets());
}

// Whole windows train and validate, and none is lost.
TEST_F(SampleReaderTest, WindowsOfPackedRecordsAreTheirSequences) {
  std::vector<Record> records(9, {10, 5});
  records.push_back({11, 5});  // the last one has the target behind the end
  const std::string path = WriteRecords(dir_.File("p"), records, 10);
  for (const uint64_t blocks : {1, 2}) {
    const auto reader = SampleReader::Create({.sources = {{path}},
                                              .sequence_length = 10,
                                              .validation_fraction = 0.25,
                                              .validation_blocks = blocks});
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->training_windows(), 8u);
    EXPECT_EQ(reader->validation_windows(), 2u);
    std::vector<int32_t> starts = Starts(*reader, 8, 10);
    for (const int32_t start : Starts(*reader, 2, 10, true)) {
      starts.push_back(start);
    }
    std::sort(starts.begin(), starts.end());
    EXPECT_EQ(starts,
              (std::vector<int32_t>{0, 10, 20, 30, 40, 50, 60, 70, 80, 90}));
  }
  EXPECT_TRUE(
      Fails(SampleReader::Create({.sources = {{path}}, .sequence_length = 20})
                .status(),
            absl::StatusCode::kInvalidArgument,
            {path, "packed into sequences of 10",
             "training.sequence_length: 10", "--sequence-length 20"}));
}

TEST_F(SampleReaderTest, NamesTheFileThatHasNoDocuments) {
  const std::string with = WriteDocuments(dir_.File("d"), {30});
  EXPECT_TRUE(Fails(SampleReader::Create({.sources = {{with}, {path_}},
                                          .sequence_length = 10,
                                          .isolate_documents = true})
                        .status(),
                    absl::StatusCode::kInvalidArgument,
                    {path_, "does not say where its documents end",
                     "data.isolate_documents", "troupe data prepare"}));
}

}  // namespace
}  // namespace troupe
