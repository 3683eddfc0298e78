// A checkpoint of three tensors, each element a known value, saved by any
// number of ranks: what the tests of commit, checkpoint_dir and tensor_reader
// share.
#ifndef TROUPE_TESTS_STORAGE_CHECKPOINT_SMALL_CHECKPOINT_H_
#define TROUPE_TESTS_STORAGE_CHECKPOINT_SMALL_CHECKPOINT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/check.h"
#include "storage/checkpoint/commit.h"
#include "storage/engine/make_engine.h"

namespace troupe {

struct SmallTensor {
  std::string name;
  std::vector<int64_t> shape;
  int32_t first_value;  // element i is first_value + i
};

inline std::vector<SmallTensor> SmallTensors() {
  return {{"transformer.wte.weight", {7, 5}, 100},
          {"transformer.h.0.attn.c_attn.weight", {4, 3, 6}, 1000},
          {"optimizer.step", {}, 9}};
}

// The elements of a box, dense.
inline std::vector<int32_t> SmallValues(const SmallTensor& tensor,
                                        const TensorBox& box) {
  std::vector<int32_t> all(ElementCount(tensor.shape));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = tensor.first_value + static_cast<int32_t>(i);
  }
  std::vector<int32_t> values(ElementCount(box.shape));
  const TensorBox whole = WholeTensor(tensor.shape);
  CopyBox({.region = box,
           .from_box = whole,
           .from = reinterpret_cast<const char*>(all.data()),
           .to_box = box,
           .to = reinterpret_cast<char*>(values.data()),
           .element_bytes = 4});
  return values;
}

// What rank `rank` of `ranks` owns: an even range of each flattened tensor, as
// ZeRO divides it.
inline std::vector<TensorBox> EvenBoxes(const SmallTensor& tensor, int rank,
                                        int ranks) {
  const int64_t count = ElementCount(tensor.shape);
  const int64_t begin = count * rank / ranks;
  return BoxesOfRange(tensor.shape,
                      {begin, count * (rank + 1) / ranks - begin});
}

// One rank's part, through a real engine.
inline absl::StatusOr<ShardReceipt> WriteSmallShards(
    const CheckpointAttempt& attempt, int rank, int ranks) {
  std::vector<std::vector<int32_t>> values;
  std::vector<ShardToWrite> shards;
  for (const SmallTensor& tensor : SmallTensors()) {
    for (const TensorBox& box : EvenBoxes(tensor, rank, ranks)) {
      values.push_back(SmallValues(tensor, box));
      shards.push_back({tensor.name, StoredDType::kI32, tensor.shape, box,
                        values.back().data()});
    }
  }
  absl::StatusOr<std::unique_ptr<IoEngine>> engine = MakeIoEngine();
  CHECK_OK(engine.status());
  return WriteShardFile(**engine, attempt, {.rank = rank}, shards);
}

inline Manifest SmallManifest(int64_t step) {
  Manifest manifest;
  manifest.job_name = "small";
  manifest.step = step;
  manifest.samples_consumed = static_cast<uint64_t>(step) * 32;
  manifest.tokenizer = "bytes";
  return manifest;
}

// All ranks and the commit; returns the path.
inline std::string SaveSmall(const CheckpointAttempt& attempt, int ranks) {
  CHECK_OK(BeginCheckpoint(attempt).status());
  std::vector<ShardReceipt> receipts;
  for (int rank = 0; rank < ranks; ++rank) {
    absl::StatusOr<ShardReceipt> receipt =
        WriteSmallShards(attempt, rank, ranks);
    CHECK_OK(receipt.status());
    receipts.push_back(*std::move(receipt));
  }
  absl::StatusOr<std::string> path =
      CommitCheckpoint(attempt, SmallManifest(attempt.step), receipts);
  CHECK_OK(path.status());
  return *path;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_STORAGE_CHECKPOINT_SMALL_CHECKPOINT_H_
