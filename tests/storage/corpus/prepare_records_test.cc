#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/corpus/prepare_tokens.h"
#include "storage/corpus/record_encoder.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/token_file.h"
#include "tests/storage/corpus/prepare.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

// A record of some 10 to 40 tokens, of which some count.
std::string Line(int i) {
  return absl::StrCat("{\"prompt\": \"", std::string(3 + i * 7 % 20, 'x'),
                      "\", \"completion\": \" ", std::string(1 + i % 9, 'y'), i,
                      "\"}\n");
}

class PrepareRecords : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 400; ++i) lines += Line(i);
    WriteText(dir_.File("r.jsonl"), lines);
  }

  PrepareTokensOptions Options(uint64_t sequence_length) {
    return {
        .rules = {.records = &records_, .sequence_length = sequence_length}};
  }
  absl::StatusOr<PreparedTokens> PrepareAs(const std::string& out,
                                           const PrepareTokensOptions& options,
                                           const std::string& in = "r.jsonl") {
    return Prepare(*tokenizer_, {.inputs = {dir_.File(in)},
                                 .path = dir_.File(out),
                                 .options = options});
  }

  TempDir dir_;
  const std::unique_ptr<Tokenizer> tokenizer_ =
      MakeHuggingFaceTokenizer(ReadText("tests/oracle/tokenizers/gpt2.json"),
                               "{\"eos_token\": \"<|endoftext|>\"}")
          .value();
  const RecordEncoder records_ =
      RecordEncoder::Create(*tokenizer_, chat::OpenChatFormat("", "")).value();
};

struct Whole {
  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;
};
Whole ReadAll(const TokenFile& file) {
  Whole whole = {std::vector<int32_t>(file.size()),
                 std::vector<uint8_t>(file.size())};
  EXPECT_TRUE(file.Read(0, file.size(), whole.ids.data()).ok());
  const auto counts = std::make_unique<bool[]>(file.size());
  EXPECT_TRUE(file.ReadCounted(0, file.size(), counts.get()).ok());
  std::copy_n(counts.get(), file.size(), whole.counts.begin());
  return whole;
}

TEST_F(PrepareRecords, FollowEachOther) {
  const auto prepared = PrepareAs("t", Options(0));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto file = TokenFile::Open(dir_.File("t"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Verify().ok()) << file->Verify();
  EXPECT_EQ(file->layout().documents, 400u);
  EXPECT_EQ(file->layout().packed_length, 0u);
  EXPECT_EQ(prepared->padding, 0u);
  std::vector<int32_t> ids;
  std::vector<uint8_t> counts;
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(records_.Encode(Line(i), ids, counts).ok());
  }
  const Whole whole = ReadAll(*file);
  EXPECT_EQ(whole.ids, ids);
  EXPECT_EQ(whole.counts, counts);
  EXPECT_EQ(prepared->header.counted->tokens,
            std::count(counts.begin(), counts.end(), 1));
}

TEST_F(PrepareRecords, AreWholeInSequences) {
  constexpr uint64_t kLength = 64;
  const auto prepared = PrepareAs("t", Options(kLength));
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto file = TokenFile::Open(dir_.File("t"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->Verify().ok()) << file->Verify();
  EXPECT_EQ(file->size() % kLength, 1u);
  EXPECT_EQ(file->layout().packed_length, kLength);
  EXPECT_EQ(file->layout().documents, 400u);
  const Whole whole = ReadAll(*file);
  const auto ends = file->DocumentEnds(0, file->size()).value();
  uint64_t begin = 0, padding = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<int32_t> ids;
    std::vector<uint8_t> counts;
    ASSERT_TRUE(records_.Encode(Line(i), ids, counts).ok());
    ASSERT_GE(ends[i] - begin, ids.size()) << i;
    EXPECT_TRUE(std::equal(ids.begin(), ids.end(), whole.ids.begin() + begin));
    EXPECT_TRUE(
        std::equal(counts.begin(), counts.end(), whole.counts.begin() + begin));
    EXPECT_EQ(begin / kLength, (begin + ids.size() - 1) / kLength)
        << "record " << i << " is in two sequences";
    for (uint64_t at = begin + ids.size(); at < ends[i]; ++at, ++padding) {
      EXPECT_EQ(whole.counts[at], 0);
    }
    begin = ends[i];
  }
  EXPECT_EQ(prepared->padding, padding);
  EXPECT_LT(padding, file->size() / 4) << "sequences are filled";
}

TEST_F(PrepareRecords, ThreadsAreNotSeen) {
  for (const uint64_t length : {0, 64}) {
    ASSERT_TRUE(PrepareAs("of1", Options(length)).ok());
    for (const int threads : {2, 5}) {
      PrepareTokensOptions options = Options(length);
      options.threads = threads;
      ASSERT_TRUE(PrepareAs("t", options).ok());
      EXPECT_EQ(ReadText(dir_.File("t")) == ReadText(dir_.File("of1")), true);
    }
  }
}

TEST_F(PrepareRecords, KilledTheyAreContinued) {
  // More than one part of text.
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += Line(i);
  WriteText(dir_.File("r.jsonl"), lines);
  const auto whole = PrepareAs("whole", Options(64));
  ASSERT_TRUE(whole.ok()) << whole.status();
  std::vector<std::string> snapshots;
  PrepareTokensOptions options = Options(64);
  options.save_every_bytes = 1;
  options.progress = [&](uint64_t, uint64_t) {
    const std::string copy = dir_.File(absl::StrCat("at", snapshots.size()));
    fs::copy(dir_.File("t.partial"), copy);
    std::ofstream(copy + "/counted", std::ios::app) << "more than was saved";
    snapshots.push_back(copy);
    return absl::OkStatus();
  };
  ASSERT_TRUE(PrepareAs("t", options).ok());
  ASSERT_GT(snapshots.size(), 2u);
  int continued = 0;
  options.progress = nullptr;
  options.note = [&](const std::string& line) {
    continued += line.find("continuing") != std::string::npos ? 1 : 0;
  };
  for (const std::string& snapshot : snapshots) {
    fs::remove_all(dir_.File("t.partial"));
    fs::rename(snapshot, dir_.File("t.partial"));
    const auto again = PrepareAs("t", options);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ReadText(dir_.File("t")) == ReadText(dir_.File("whole")), true);
    EXPECT_EQ(again->padding, whole->padding);
  }
  EXPECT_GT(continued, 1);
}

TEST_F(PrepareRecords, BadOnesAreNamedOrLeftOut) {
  WriteText(
      dir_.File("bad.jsonl"),
      absl::StrCat(Line(1), "{\"text\": \"a\"}\n", Line(2), "{\"prompt\": \"",
                   std::string(200, 'q'), "\", \"completion\": \"b\"}\n"));
  EXPECT_TRUE(
      Fails(PrepareAs("t", Options(64), "bad.jsonl").status(),
            absl::StatusCode::kInvalidArgument,
            {"bad.jsonl:2: has neither \"messages\"", "--skip-bad-lines"}));
  WriteText(dir_.File("long.jsonl"),
            absl::StrCat(Line(1), "{\"prompt\": \"", std::string(200, 'q'),
                         "\", \"completion\": \"b\"}\n"));
  EXPECT_TRUE(Fails(PrepareAs("t", Options(32), "long.jsonl").status(),
                    absl::StatusCode::kInvalidArgument,
                    {"long.jsonl:2: the record has", "--sequence-length 32"}));
  PrepareTokensOptions skips = Options(32);
  skips.rules.skip_bad_lines = true;
  const auto prepared = PrepareAs("t", skips, "bad.jsonl");
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  EXPECT_EQ(prepared->skipped_lines, 2);
  EXPECT_EQ(prepared->header.documents, 2u);
  // There is no template here. Leaving lines out would lose all conversations.
  WriteText(dir_.File("chats.jsonl"),
            absl::StrCat(Line(1),
                         "{\"messages\": [{\"role\": \"user\", "
                         "\"content\": \"a\"}]}\n"));
  const absl::Status none = PrepareAs("t", skips, "chats.jsonl").status();
  EXPECT_TRUE(
      Fails(none, absl::StatusCode::kNotFound,
            {"chats.jsonl:2: there is no chat template", "--chat-template"}));
  EXPECT_FALSE(absl::StrContains(none.message(), "--skip-bad-lines")) << none;
  WriteText(dir_.File("a.txt"), "a text");
  EXPECT_TRUE(Fails(PrepareAs("t", Options(0), "a.txt").status(),
                    absl::StatusCode::kInvalidArgument,
                    {"a.txt: is a text", "--format jsonl"}));
}

}  // namespace
}  // namespace troupe
