#include "storage/checkpoint/load_tensors.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/safetensors_reader.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using Values = std::vector<int32_t>;

std::unique_ptr<IoEngine> Engine() {
  return MakeIoEngine({.log = false}).value();
}

// What is wanted of a tensor; no boxes: all.
struct Wish {
  SmallTensor tensor;
  std::vector<TensorBox> boxes = {};
};

std::vector<Wish> AllOf(const std::vector<SmallTensor>& tensors) {
  std::vector<Wish> wishes;
  for (const SmallTensor& tensor : tensors) wishes.push_back({tensor});
  return wishes;
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
    return LoadWishes(AllOf(wanted));
  }

  absl::Status LoadWishes(const std::vector<Wish>& wanted) {
    std::vector<TensorToLoad> tensors;
    bool all = true;
    for (const auto& [tensor, boxes] : wanted) {
      all = all && boxes.empty();
      Values& values = values_[tensor.name];
      values.assign(ElementCount(tensor.shape), -1);
      tensors.push_back(
          {.name = tensor.name,
           .dtype = StoredDType::kI32,
           .shape = tensor.shape,
           .boxes = boxes,
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
    if (all) {
      EXPECT_EQ(taken_, sizes);
    }
    EXPECT_LE(taken_, sizes);
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
    std::vector<ShardReceipt> receipts;
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
      receipts.push_back(
          WriteShardFile(*Engine(), attempt, {.rank = rank}, shards).value());
    }
    path_ = CommitCheckpoint(attempt, SmallManifest(1), receipts).value();
  }

  static std::vector<SmallTensor> Tensors() {
    std::vector<SmallTensor> tensors;
    for (int i = 0; i < 5; ++i) {
      tensors.push_back(
          {absl::StrCat("t", i), {kRows, kColumns}, 10'000'000 * i});
    }
    return tensors;
  }
  static void ForEachElement(
      const TensorBox& box,
      absl::FunctionRef<void(int64_t row, int64_t column, uint64_t index)> f) {
    uint64_t index = 0;
    for (int64_t row = 0; row < box.shape[0]; ++row) {
      for (int64_t column = 0; column < box.shape[1]; ++column) {
        f(box.start[0] + row, box.start[1] + column, index++);
      }
    }
  }

  static bool Has(const std::vector<TensorBox>& boxes, int64_t row,
                  int64_t column) {
    return std::any_of(boxes.begin(), boxes.end(), [&](const TensorBox& box) {
      return row >= box.start[0] && row < box.start[0] + box.shape[0] &&
             column >= box.start[1] && column < box.start[1] + box.shape[1];
    });
  }

  // Of each file the blocks that have an element of what is wanted, and the
  // header's: looks at each element.
  using Blocks = std::map<std::string, std::set<uint64_t>>;
  Blocks BlocksOf(const std::vector<Wish>& wishes) const {
    Blocks blocks;
    const Manifest manifest = *ReadManifest(path_);
    for (const Wish& wish : wishes) {
      for (const ManifestTensor& stored : manifest.tensors) {
        if (stored.name != wish.tensor.name) continue;
        for (const ManifestShard& shard : stored.shards) {
          const auto file =
              *SafetensorsReader::Open(absl::StrCat(path_, "/", shard.file));
          const uint64_t begin =
              file.header().data_offset + file.Find(shard.key)->begin;
          uint64_t last = ~uint64_t{0};
          ForEachElement(
              shard.box, [&](int64_t row, int64_t column, uint64_t index) {
                if (!Has(wish.boxes, row, column)) return;
                const uint64_t block = (begin + 4 * index) / kBlockBytes;
                if (block != last) blocks[shard.file].insert({0, block});
                last = block;
              });
        }
      }
    }
    return blocks;
  }

  // Loads them, and expects each wanted element, out of no other blocks.
  void ExpectOnlyWhatIsWanted(const std::vector<Wish>& wishes) {
    Loader loader(path_);
    const absl::Status loaded = loader.LoadWishes(wishes);
    ASSERT_TRUE(loaded.ok()) << loaded;
    uint64_t bytes = 0;
    for (const auto& [file, blocks] : BlocksOf(wishes)) {
      const uint64_t size = std::filesystem::file_size(path_ + "/" + file);
      for (const uint64_t block : blocks) {
        bytes += std::min(kBlockBytes, size - block * kBlockBytes);
      }
    }
    EXPECT_EQ(loader.bytes_told(), bytes);
    for (const Wish& wish : wishes) {
      const Values& values = loader.values(wish.tensor.name);
      const Values expected =
          SmallValues(wish.tensor, WholeTensor(wish.tensor.shape));
      bool same = true;
      for (const TensorBox& box : wish.boxes) {
        ForEachElement(box, [&](int64_t row, int64_t column, uint64_t) {
          const int64_t at = row * kColumns + column;
          same = same && values[at] == expected[at];
        });
      }
      EXPECT_TRUE(same) << wish.tensor.name;
    }
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

// As ranks cut it that are more than those that saved it.
TEST_F(LargeCheckpoint, OfATensorOnlyTheBlocksWithWhatIsWantedAreRead) {
  const SmallTensor t1 = Tensors()[1];
  const SmallTensor t3 = Tensors()[3];
  // Rows: each 2 MiB.
  for (int row = 0; row < kRows; ++row) {
    const TensorBox box = {{row, 0}, {1, kColumns}};
    ExpectOnlyWhatIsWanted({{t1, {box}}});
    ExpectOnlyWhatIsWanted({{t3, {box}}, {t1, {box}}});
  }
  // Ranges of the flat tensor.
  constexpr int kRanks = 8;
  for (int rank = 0; rank < kRanks; ++rank) {
    const int64_t part = kRows * kColumns / kRanks;
    ExpectOnlyWhatIsWanted(
        {{t1, BoxesOfRange(t1.shape, {.begin = rank * part, .count = part})}});
  }
  // A few columns, and pieces in any order.
  ExpectOnlyWhatIsWanted({{t1, {{{0, 500'000}, {kRows, 24}}}}});
  ExpectOnlyWhatIsWanted({{t1, {{{2, 524'287}, {1, 1}}, {{0, 0}, {1, 1}}}}});
}

TEST_F(LargeCheckpoint, PiecesOfPiecesAreFound) {
  const SmallTensor t4 = Tensors()[4];
  // Of both halves, of the second only, of the second's second row.
  ExpectOnlyWhatIsWanted({{t4, {{{1, 262'000}, {2, 300}}}}});
  ExpectOnlyWhatIsWanted({{t4, {{{0, 262'144}, {kRows, 10}}}}});
  ExpectOnlyWhatIsWanted({{t4, {{{1, 300'000}, {1, kColumns - 300'000}}}}});
}

TEST_F(LargeCheckpoint, WhatIsNotWantedOfATensorIsNotChecked) {
  // In the first row of t3, which lies in bytes 18 to 24 MiB.
  Flip("rank-00000.safetensors", (19 << 20) + 5);
  const auto row = [](int64_t row) {
    return std::vector<Wish>{{Tensors()[3], {{{row, 0}, {1, kColumns}}}}};
  };
  EXPECT_TRUE(Loader(path_).LoadWishes(row(1)).ok());
  EXPECT_TRUE(Fails(Loader(path_).LoadWishes(row(0)),
                    absl::StatusCode::kDataLoss,
                    {"bytes 16777216 to 20971520: "}));
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
  // Whichever blocks come first: the last one of a file is smaller.
  EXPECT_GE(loader.bytes_told(), 2 * kBlockBytes);
  EXPECT_LE(loader.bytes_told(), 3 * kBlockBytes);
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
