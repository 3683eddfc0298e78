#include "storage/dataset/megatron_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/storage/dataset/foreign_files.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

// Three sequences of two documents: 1 2 | 3 and 4 5 6, as uint16.
MegatronIndex Example() {
  return {.lengths = {2, 1, 3}, .pointers = {0, 4, 6}, .documents = {0, 2, 3}};
}
const std::vector<int64_t> kTokens = {1, 2, 3, 4, 5, 6};

class MegatronFileTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteText(prefix_ + ".bin", Packed(kTokens, 2)); }

  absl::StatusOr<TokenLayout> Read(const std::string& index) {
    WriteText(prefix_ + ".idx", index);
    EXPECT_TRUE(IsMegatronFile(prefix_));
    return ReadMegatronFile(prefix_);
  }
  absl::StatusOr<TokenLayout> Read(const MegatronIndex& index) {
    return Read(MegatronIndexBytes(index));
  }

  TempDir dir_;
  const std::string prefix_ = dir_.File("my-gpt2_text_document");
};

TEST_F(MegatronFileTest, NeighboursAreOneRun) {
  const auto layout = Read(Example());
  ASSERT_TRUE(layout.ok()) << layout.status().ToString();
  EXPECT_EQ(layout->token_count, 6u);
  EXPECT_EQ(layout->documents, 2u);
  EXPECT_EQ(layout->runs.size(), 1u);
  EXPECT_EQ(layout->data->path(), prefix_ + ".bin");
}

// In bytes, of a line of /proc/self/status.
uint64_t MemoryOf(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind(name + ":", 0) == 0) {
      return 1024 * std::stoull(line.substr(name.size() + 1));
    }
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

// Each rank of a host opens it.
TEST_F(MegatronFileTest, AnIndexOfAnyLengthTakesLittleMemory) {
  constexpr uint64_t kSequences = 10'000'000;  // all of no tokens
  MegatronIndex none = {.lengths = {}, .pointers = {}, .documents = {}};
  std::string header = MegatronIndexBytes(none).substr(0, 34);
  const uint64_t documents = 1;
  memcpy(header.data() + 18, &kSequences, 8);
  memcpy(header.data() + 26, &documents, 8);
  WriteText(prefix_ + ".idx", header);
  std::filesystem::resize_file(prefix_ + ".idx", 34 + 12 * kSequences + 8);
  WriteText(prefix_ + ".bin", "");
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak is of now
  const uint64_t before = MemoryOf("VmRSS");
  const auto layout = ReadMegatronFile(prefix_);
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->token_count, 0u);
  EXPECT_LT(MemoryOf("VmHWM"), before + 12 * kSequences / 10);
}

TEST_F(MegatronFileTest, AnyOfItsNamesWillDo) {
  ASSERT_TRUE(Read(Example()).ok());
  for (const char* end : {"", ".idx", ".bin"}) {
    EXPECT_TRUE(IsMegatronFile(prefix_ + end));
    EXPECT_EQ(ReadMegatronFile(prefix_ + end)->token_count, 6u);
  }
  EXPECT_FALSE(IsMegatronFile(prefix_ + ".txt"));
  EXPECT_FALSE(IsMegatronFile(dir_.path()));
}

TEST_F(MegatronFileTest, SequencesMayLieAnywhere) {
  const auto layout = Read(
      {.lengths = {3, 0, 2, 1}, .pointers = {6, 0, 0, 4}, .documents = {0, 4}});
  ASSERT_TRUE(layout.ok()) << layout.status().ToString();
  EXPECT_EQ(layout->token_count, 6u);
  ASSERT_EQ(layout->runs.size(), 2u);
  EXPECT_EQ(layout->runs[1].first_token, 3u);
  EXPECT_EQ(layout->runs[1].offset, 0u);
}

TEST_F(MegatronFileTest, KnowsTheTypesOfIds) {
  const std::pair<int, uint32_t> types[] = {{1, 1}, {2, 1}, {3, 2},
                                            {4, 4}, {5, 8}, {8, 2}};
  for (const auto& [code, bytes] : types) {
    WriteText(prefix_ + ".bin", Packed({7, 8}, bytes));
    const auto layout = Read({.code = code, .lengths = {2}, .pointers = {0}});
    ASSERT_TRUE(layout.ok()) << layout.status().ToString();
    EXPECT_EQ(layout->type.bytes, bytes);
    EXPECT_EQ(layout->type.is_signed, code != 1 && code != 8);
  }
  EXPECT_TRUE(Fails(Read({.code = 7}).status(),
                    absl::StatusCode::kUnimplemented,
                    {prefix_ + ".idx: offset 17", "float32"}));
  for (const int code : {0, 9}) {
    EXPECT_TRUE(Fails(Read({.code = code}).status(),
                      absl::StatusCode::kDataLoss, {"offset 17", "unknown"}));
  }
}

TEST_F(MegatronFileTest, EveryTruncationIsFound) {
  const std::string whole = MegatronIndexBytes(Example());
  for (size_t bytes = 9; bytes < whole.size(); ++bytes) {
    EXPECT_TRUE(Fails(Read(whole.substr(0, bytes)).status(),
                      absl::StatusCode::kDataLoss,
                      {prefix_ + ".idx", "offset"}))
        << bytes;
  }
  EXPECT_TRUE(Fails(Read(whole + "x").status(), absl::StatusCode::kDataLoss,
                    {"something follows"}));
  EXPECT_TRUE(Fails(Read(whole + std::string(3, '\0')).status(),
                    absl::StatusCode::kUnimplemented, {"multimodal"}));
}

TEST_F(MegatronFileTest, TheTwoFilesMustFitEachOther) {
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  ASSERT_TRUE(Read(Example()).ok());
  WriteText(prefix_ + ".bin", Packed({1, 2, 3, 4, 5}, 2));
  EXPECT_TRUE(Fails(ReadMegatronFile(prefix_).status(), kLoss,
                    {".idx: offset 62: sequence 2 has 3 tokens (uint16) from "
                     "byte 6, but ",
                     ".bin has 10 bytes"}));
  WriteText(prefix_ + ".bin", Packed({1, 2, 3, 4, 5, 6, 7}, 2));
  EXPECT_TRUE(Fails(ReadMegatronFile(prefix_).status(), kLoss,
                    {".bin: offset 12: has 14 bytes", "not one dataset"}));
  std::filesystem::remove(prefix_ + ".bin");
  EXPECT_TRUE(Fails(ReadMegatronFile(prefix_).status(),
                    absl::StatusCode::kNotFound, {prefix_ + ".bin"}));
}

TEST_F(MegatronFileTest, AnIndexThatCannotBeIsRefused) {
  constexpr auto kLoss = absl::StatusCode::kDataLoss;
  const auto refused = [&](const MegatronIndex& index, const char* why) {
    return Fails(Read(index).status(), kLoss, {prefix_ + ".idx: offset", why});
  };
  MegatronIndex index = Example();
  index.version = 2;
  EXPECT_TRUE(refused(index, "version 2"));
  index = Example();
  index.lengths[1] = -1;
  EXPECT_TRUE(refused(index, "sequence 1 has -1 tokens"));
  for (const int64_t pointer : {int64_t{-2}, int64_t{13}, INT64_MAX}) {
    index = Example();
    index.pointers[0] = pointer;
    EXPECT_TRUE(refused(index, "sequence 0 has 2 tokens"));
  }
  for (const auto& documents :
       std::vector<std::vector<int64_t>>{{0, 4}, {2, 1}, {-1}}) {
    index = Example();
    index.documents = documents;
    EXPECT_TRUE(refused(index, "begins at sequence"));
  }
  index = Example();
  index.documents = {};
  EXPECT_TRUE(refused(index, "no document index"));
  // Counts that would overflow.
  std::string bytes = MegatronIndexBytes(Example());
  bytes.replace(18, 8, Packed({INT64_MAX}, 8));
  EXPECT_TRUE(Fails(Read(bytes).status(), kLoss, {"do not fit"}));
}

}  // namespace
}  // namespace troupe
