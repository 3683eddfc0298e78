#include "storage/checkpoint/safetensors_reader.h"

#include <numeric>

#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/checkpoint/safetensors_writer.h"
#include "storage/engine/make_engine.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class SafetensorsReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto engine = MakeIoEngine();
    auto writer = SafetensorsWriter::Create(
        **engine, path_,
        {{"w", StoredDType::kF32, {4, 5}}, {"u", StoredDType::kU8, {3}}},
        {{"format", "pt"}});
    CHECK_OK(writer.status());
    std::iota(values_.begin(), values_.end(), 0.5f);
    CHECK_OK((*writer)->Append(
        "w", {reinterpret_cast<const char*>(values_.data()), 80}));
    CHECK_OK((*writer)->Append("u", "xyz"));
    CHECK_OK((*writer)->Finish().status());
  }

  TempDir dir_;
  const std::string path_ = dir_.File("f.safetensors");
  std::vector<float> values_ = std::vector<float>(20);
};

TEST_F(SafetensorsReaderTest, ReadsTensorsAndSlices) {
  const auto file = SafetensorsReader::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(file->header().metadata.at("format"), "pt");
  const SafetensorsTensor* w = file->Find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{4, 5}));
  std::vector<float> all(20);
  ASSERT_TRUE(file->ReadAll(*w, all.data()).ok());
  EXPECT_EQ(all, values_);
  float two[2];
  ASSERT_TRUE(file->Read(*w, {.offset = 28, .bytes = 8}, two).ok());
  EXPECT_EQ(two[0], 7.5f);
  EXPECT_EQ(two[1], 8.5f);
  EXPECT_EQ(file->Find("v"), nullptr);
  EXPECT_TRUE(Fails(file->Read(*w, {.offset = 76, .bytes = 8}, two),
                    absl::StatusCode::kOutOfRange, {"\"w\", which has 80"}));
}

TEST_F(SafetensorsReaderTest, EveryTruncationIsFound) {
  const std::string whole = ReadText(path_);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    WriteText(path_, whole.substr(0, bytes));
    EXPECT_TRUE(Fails(SafetensorsReader::Open(path_).status(),
                      absl::StatusCode::kDataLoss, {path_, "offset"}))
        << bytes;
  }
  WriteText(path_, whole + "x");
  EXPECT_TRUE(Fails(SafetensorsReader::Open(path_).status(),
                    absl::StatusCode::kDataLoss, {"goes on"}));
}

TEST_F(SafetensorsReaderTest, NoFlippedBitOfTheHeaderDoesHarm) {
  const std::string whole = ReadText(path_);
  const uint64_t header = SafetensorsReader::Open(path_)->header().data_offset;
  int refused = 0;
  for (size_t at = 0; at < header; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      WriteText(path_, flipped);
      const auto file = SafetensorsReader::Open(path_);
      if (!file.ok()) {
        ++refused;
        continue;
      }
      // A name or a shape may have changed, but all of it can be read.
      std::string out(whole.size(), '\0');
      for (const SafetensorsTensor& tensor : file->header().tensors) {
        EXPECT_TRUE(file->ReadAll(tensor, out.data()).ok());
      }
    }
  }
  EXPECT_GT(refused, static_cast<int>(header) * 4);
}

TEST_F(SafetensorsReaderTest, AbsurdLengthsAreRefusedBeforeTheyAreRead) {
  std::string bytes(16, '\xff');
  WriteText(path_, bytes);
  EXPECT_TRUE(Fails(SafetensorsReader::Open(path_).status(),
                    absl::StatusCode::kDataLoss,
                    {"offset 0", "18446744073709551615"}));
  EXPECT_TRUE(Fails(SafetensorsReader::Open(dir_.File("no")).status(),
                    absl::StatusCode::kNotFound, {dir_.File("no")}));
}

}  // namespace
}  // namespace troupe
