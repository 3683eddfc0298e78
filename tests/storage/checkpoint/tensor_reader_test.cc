#include "storage/checkpoint/tensor_reader.h"

#include <filesystem>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr char kWte[] = "transformer.wte.weight";

std::unique_ptr<TensorReader> Open(const std::string& path) {
  auto reader = TensorReader::Open(path);
  CHECK_OK(reader.status());
  return *std::move(reader);
}

TEST(TensorReader, EveryPlanReadsWhatEveryOtherSaved) {
  for (int saved_by = 1; saved_by <= 8; ++saved_by) {
    TempDir dir;
    const auto reader = Open(SaveSmall({dir.path(), 1, "a"}, saved_by));
    for (const SmallTensor& tensor : SmallTensors()) {
      const int64_t count = ElementCount(tensor.shape);
      for (int ranks = 1; ranks <= 8; ++ranks) {
        for (int rank = 0; rank < ranks; ++rank) {
          const int64_t begin = count * rank / ranks;
          const int64_t end = count * (rank + 1) / ranks;
          std::vector<int32_t> got(end - begin), want(end - begin);
          std::iota(want.begin(), want.end(),
                    tensor.first_value + static_cast<int32_t>(begin));
          ASSERT_TRUE(reader
                          ->ReadRange(tensor.name, StoredDType::kI32,
                                      {begin, end - begin}, got.data())
                          .ok());
          EXPECT_EQ(got, want);
        }
      }
    }
  }
}

TEST(TensorReader, EveryBoxOfATensorIsFound) {
  TempDir dir;
  const auto reader = Open(SaveSmall({dir.path(), 1, "a"}, 3));
  const SmallTensor tensor = SmallTensors()[0];
  for (int64_t r = 0; r <= 7; ++r) {
    for (int64_t c = 0; c <= 5; ++c) {
      for (int64_t rows = 0; r + rows <= 7; ++rows) {
        for (int64_t columns = 0; c + columns <= 5; ++columns) {
          const TensorBox box = {{r, c}, {rows, columns}};
          std::vector<int32_t> got(rows * columns, -1);
          ASSERT_TRUE(
              reader->Read(kWte, StoredDType::kI32, box, got.data()).ok());
          ASSERT_EQ(got, SmallValues(tensor, box)) << FormatBox(box);
        }
      }
    }
  }
}

// Rows of 6 MiB, so that reading splits in the outer and in the inner dims.
TEST(TensorReader, LargeRowsAreReadInPieces) {
  TempDir dir;
  const CheckpointAttempt attempt = {dir.path(), 1, "a"};
  ASSERT_TRUE(BeginCheckpoint(attempt).ok());
  const std::vector<int64_t> shape = {2, 3, 524288};
  std::vector<int32_t> data(ElementCount(shape));
  std::iota(data.begin(), data.end(), 0);
  const auto engine = MakeIoEngine();
  const auto file = WriteShardFile(
      **engine, attempt, {.rank = 0},
      {{"big", StoredDType::kI32, shape, WholeTensor(shape), data.data()}});
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const auto reader =
      Open(*CommitCheckpoint(attempt, SmallManifest(1), {*file}));
  for (const TensorBox& box :
       {WholeTensor(shape), TensorBox{{0, 1, 7}, {2, 2, 524281}},
        TensorBox{{1, 0, 100}, {1, 3, 3}}}) {
    std::vector<int32_t> got(ElementCount(box.shape));
    std::vector<int32_t> want = got;
    ASSERT_TRUE(reader->Read("big", StoredDType::kI32, box, got.data()).ok());
    CopyBox({.region = box,
             .from_box = WholeTensor(shape),
             .from = reinterpret_cast<const char*>(data.data()),
             .to_box = box,
             .to = reinterpret_cast<char*>(want.data()),
             .element_bytes = 4});
    EXPECT_TRUE(got == want) << FormatBox(box);
  }
}

TEST(TensorReader, RefusesWhatDoesNotFit) {
  TempDir dir;
  const auto reader = Open(SaveSmall({dir.path(), 1, "a"}, 2));
  std::vector<int32_t> out(100);
  EXPECT_TRUE(Fails(reader->Read("lm_head", StoredDType::kI32, {}, out.data()),
                    absl::StatusCode::kNotFound, {"has no tensor lm_head"}));
  EXPECT_TRUE(Fails(
      reader->Read(kWte, StoredDType::kF32, WholeTensor({7, 5}), out.data()),
      absl::StatusCode::kInvalidArgument, {kWte, "is I32, asked for as F32"}));
  EXPECT_TRUE(
      Fails(reader->Read(kWte, StoredDType::kI32, {{6, 0}, {2, 5}}, out.data()),
            absl::StatusCode::kInvalidArgument, {"is not inside"}));
  EXPECT_TRUE(
      Fails(reader->ReadRange(kWte, StoredDType::kI32, {30, 6}, out.data()),
            absl::StatusCode::kInvalidArgument, {"has 35 elements"}));
  EXPECT_EQ(reader->Find("lm_head"), nullptr);
  EXPECT_EQ(reader->Find(kWte)->shape, (std::vector<int64_t>{7, 5}));
  EXPECT_EQ(reader->manifest().samples_consumed, 32u);
}

TEST(TensorReader, FilesThatDifferFromTheManifestAreFound) {
  TempDir dir;
  const std::string path = SaveSmall({dir.path(), 1, "a"}, 2);
  const std::string other = SaveSmall({dir.path(), 2, "a"}, 1);
  const std::string shard = path + "/rank-00000.safetensors";
  const std::string whole = ReadText(shard);
  std::vector<int32_t> out(35);
  const auto read = [&] {
    return Open(path)->Read(kWte, StoredDType::kI32, WholeTensor({7, 5}),
                            out.data());
  };
  ASSERT_TRUE(read().ok());
  WriteText(shard, whole.substr(0, whole.size() - 4));
  EXPECT_TRUE(Fails(read(), absl::StatusCode::kDataLoss, {shard}));
  // Every value but one, and that by one bit.
  std::string flipped = whole;
  flipped[flipped.size() - 4] ^= 1;
  WriteText(shard, flipped);
  EXPECT_TRUE(
      Fails(read(), absl::StatusCode::kDataLoss, {shard, "CRC-32C is"}));
  // A sound file, but another one.
  std::filesystem::copy_file(other + "/rank-00000.safetensors", shard,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(
      Fails(read(), absl::StatusCode::kDataLoss, {shard, "the manifest says"}));
  std::filesystem::remove(shard);
  EXPECT_TRUE(Fails(read(), absl::StatusCode::kNotFound, {shard}));
  EXPECT_FALSE(TensorReader::Open(dir.File("missing")).ok());
}

}  // namespace
}  // namespace troupe
