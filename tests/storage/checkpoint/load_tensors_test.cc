#include "storage/checkpoint/load_tensors.h"

#include <filesystem>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using Values = std::vector<int32_t>;

std::unique_ptr<IoEngine> Engine() {
  return MakeIoEngine({.log = false}).value();
}

// Loads tensors of int32 by name into memory of these sizes; each byte must
// come once.
class Loader {
 public:
  explicit Loader(const std::string& path)
      : path_(path), manifest_(ReadManifest(path).value()) {}

  const Manifest& manifest() const { return manifest_; }
  uint64_t bytes_told() const { return told_; }
  const Values& values(const std::string& name) { return values_[name]; }

  absl::Status Load(const std::vector<SmallTensor>& wanted) {
    std::vector<TensorToLoad> tensors;
    for (const SmallTensor& tensor : wanted) {
      Values& values = values_[tensor.name];
      values.assign(ElementCount(tensor.shape), -1);
      tensors.push_back(
          {.name = tensor.name,
           .dtype = StoredDType::kI32,
           .shape = tensor.shape,
           .take = [this, &values](uint64_t offset, absl::string_view bytes) {
             EXPECT_LE(offset + bytes.size(), 4 * values.size());
             bytes.copy(reinterpret_cast<char*>(values.data()) + offset,
                        bytes.size());
             taken_ += bytes.size();
             return absl::OkStatus();
           }});
    }
    absl::StatusOr<CheckpointLoad> load =
        CheckpointLoad::Of({path_, manifest_}, tensors);
    if (!load.ok()) return load.status();
    const absl::Status status = load->Run(*Engine(), [this](uint64_t bytes) {
      told_ += bytes;
      return told_ > stop_after ? absl::CancelledError("enough")
                                : absl::OkStatus();
    });
    if (!status.ok()) return status;
    EXPECT_EQ(told_, load->bytes());
    uint64_t sizes = 0;
    for (const auto& [name, values] : values_) sizes += 4 * values.size();
    EXPECT_EQ(taken_, sizes);
    return status;
  }

  uint64_t stop_after = ~uint64_t{0};

 private:
  const std::string path_;
  const Manifest manifest_;
  std::map<std::string, Values> values_;
  uint64_t told_ = 0;
  uint64_t taken_ = 0;
};

TEST(LoadTensors, WhateverPlanSavedThem) {
  for (int saved_by = 1; saved_by <= 8; ++saved_by) {
    TempDir dir;
    Loader loader(SaveSmall({dir.path(), 1, "a"}, saved_by));
    const absl::Status loaded = loader.Load(SmallTensors());
    ASSERT_TRUE(loaded.ok()) << loaded;
    for (const SmallTensor& tensor : SmallTensors()) {
      EXPECT_EQ(loader.values(tensor.name),
                SmallValues(tensor, WholeTensor(tensor.shape)))
          << tensor.name << " of " << saved_by;
    }
  }
}

// A checkpoint of five tensors of 6 MiB, by two ranks: the last one in halves
// of its columns.
class LargeCheckpoint : public testing::Test {
 protected:
  static constexpr int64_t kRows = 3;
  static constexpr int64_t kColumns = 524288;

  LargeCheckpoint() {
    const CheckpointAttempt attempt = {dir_.path(), 1, "a"};
    CHECK_OK(BeginCheckpoint(attempt).status());
    std::vector<ShardFile> files;
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<Values> data;
      std::vector<ShardToWrite> shards;
      data.reserve(5);
      for (const SmallTensor& tensor : Tensors()) {
        const bool split = tensor.name == "t4";
        if (!split && rank == 1) continue;
        const TensorBox box =
            split ? TensorBox{{0, rank * kColumns / 2}, {kRows, kColumns / 2}}
                  : WholeTensor(tensor.shape);
        data.push_back(SmallValues(tensor, box));
        shards.push_back({tensor.name, StoredDType::kI32, tensor.shape, box,
                          data.back().data()});
      }
      files.push_back(WriteShardFile(*Engine(), attempt, rank, shards).value());
    }
    path_ = CommitCheckpoint(attempt, SmallManifest(1), files).value();
  }

  static std::vector<SmallTensor> Tensors() {
    std::vector<SmallTensor> tensors;
    for (int i = 0; i < 5; ++i) {
      tensors.push_back(
          {absl::StrCat("t", i), {kRows, kColumns}, 10'000'000 * i});
    }
    return tensors;
  }
  // Inverts a bit of a file of the checkpoint.
  void Flip(const std::string& file, uint64_t at) {
    std::fstream stream(path_ + "/" + file,
                        std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(at);
    stream.put(byte);
    CHECK(stream.good());
  }

  const TempDir dir_;
  std::string path_;
};

TEST_F(LargeCheckpoint, ComesBack) {
  Loader loader(path_);
  const absl::Status loaded = loader.Load(Tensors());
  ASSERT_TRUE(loaded.ok()) << loaded;
  for (const SmallTensor& tensor : Tensors()) {
    EXPECT_TRUE(loader.values(tensor.name) ==
                SmallValues(tensor, WholeTensor(tensor.shape)))
        << tensor.name;
  }
}

TEST_F(LargeCheckpoint, OnlyWhatIsNeededIsReadAndChecked) {
  // Far from t1, which lies in bytes 6 to 12 MiB.
  Flip("rank-00000.safetensors", (22 << 20) + 5);
  Loader loader(path_);
  const absl::Status loaded = loader.Load({Tensors()[1]});
  ASSERT_TRUE(loaded.ok()) << loaded;
  // Blocks of 4 MiB: the header's, and three with t1 in them.
  EXPECT_EQ(loader.bytes_told(), 4 * kBlockBytes);
  EXPECT_TRUE(Fails(Loader(path_).Load({Tensors()[3]}),
                    absl::StatusCode::kDataLoss,
                    {"rank-00000.safetensors: bytes 20971520 to 25165824: ",
                     "its content changed"}));
}

TEST_F(LargeCheckpoint, AnyFlippedBitIsFound) {
  for (const uint64_t at : {20, 9 << 20, (27 << 20) + 100}) {
    Flip("rank-00000.safetensors", at);
    EXPECT_TRUE(Fails(Loader(path_).Load(Tensors()),
                      absl::StatusCode::kDataLoss, {"rank-00000.safetensors"}))
        << at;
    Flip("rank-00000.safetensors", at);
  }
  EXPECT_TRUE(Loader(path_).Load(Tensors()).ok());
}

TEST_F(LargeCheckpoint, EndsWhereItsCallerHasHadEnough) {
  Loader loader(path_);
  loader.stop_after = 2 * kBlockBytes;
  EXPECT_EQ(loader.Load(Tensors()), absl::CancelledError("enough"));
  EXPECT_EQ(loader.bytes_told(), 3 * kBlockBytes);
}

TEST_F(LargeCheckpoint, TornFilesAndOtherErrorsAreToldApart) {
  const std::string shard = path_ + "/rank-00001.safetensors";
  const auto status = [this] { return Loader(path_).Load({Tensors()[4]}); };
  std::filesystem::rename(shard, dir_.File("aside"));
  EXPECT_TRUE(Fails(status(), absl::StatusCode::kDataLoss, {shard, "missing"}));
  // Not torn: it cannot be known.
  std::filesystem::create_directory_symlink(shard, shard);
  EXPECT_TRUE(
      Fails(status(), absl::StatusCode::kFailedPrecondition, {"ELOOP"}));
  std::filesystem::remove(shard);
  std::filesystem::copy(dir_.File("aside"), shard);
  std::filesystem::resize_file(shard, 1000);
  EXPECT_TRUE(Fails(status(), absl::StatusCode::kDataLoss,
                    {shard, "has 1000 bytes, the manifest says"}));
}

TEST_F(LargeCheckpoint, ManifestsWithoutBlocksAreCheckedAsAWhole) {
  Manifest manifest = *ReadManifest(path_);
  for (ManifestFile& file : manifest.files) file.blocks.clear();
  WriteText(path_ + "/manifest.json", FormatManifest(manifest));
  Loader loader(path_);
  const absl::Status loaded = loader.Load({Tensors()[1]});
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(loader.bytes_told(),
            std::filesystem::file_size(path_ + "/rank-00000.safetensors"));
  EXPECT_TRUE(loader.values("t1") ==
              SmallValues(Tensors()[1], WholeTensor({kRows, kColumns})));
  EXPECT_TRUE(Loader(path_).Load(Tensors()).ok());
  Flip("rank-00000.safetensors", (22 << 20) + 5);
  // Nothing is read unheard of: what lies far ahead is not known yet.
  Loader stopped(path_);
  stopped.stop_after = kBlockBytes;
  EXPECT_EQ(stopped.Load({Tensors()[1]}), absl::CancelledError("enough"));
  EXPECT_TRUE(Fails(Loader(path_).Load({Tensors()[1]}),
                    absl::StatusCode::kDataLoss, {"rank-00000.safetensors"}));
}

TEST(LoadTensors, RefusesWhatIsNotThere) {
  TempDir dir;
  Loader loader(SaveSmall({dir.path(), 1, "a"}, 2));
  EXPECT_TRUE(Fails(loader.Load({{"lm_head", {1}, 0}}),
                    absl::StatusCode::kNotFound, {"has no tensor lm_head"}));
  EXPECT_TRUE(Fails(CheckpointLoad::Of({dir.path(), loader.manifest()},
                                       {{.name = SmallTensors()[0].name,
                                         .dtype = StoredDType::kF32,
                                         .take = nullptr}})
                        .status(),
                    absl::StatusCode::kInvalidArgument,
                    {"is I32, asked for as F32"}));
  SmallTensor other = SmallTensors()[0];
  other.shape.push_back(2);
  EXPECT_TRUE(Fails(loader.Load({other}), absl::StatusCode::kInvalidArgument,
                    {other.name + " is [", "] there, asked for as ["}));
}

}  // namespace
}  // namespace troupe
