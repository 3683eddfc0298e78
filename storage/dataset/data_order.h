// The one global order in which a job sees its data. It is a pure function of
// (seed, file, sequence length): any rank of any plan finds its samples by
// number, and the position in the data is one number in the checkpoint.
//
// The file is B equal parts, of each of which the first tokens train and the
// tail validates; no token does both. With B = 1, the default, the tail of the
// file validates. Training window w is the T + 1 tokens from token w * T of
// those of its part (T inputs, and the same shifted by one as targets); windows
// are numbered part by part. Sample number n (= step * global batch +
// place in the batch) is window P(n mod windows) of epoch n / windows, where P
// is a pseudo-random permutation of the windows with (seed, epoch) as its key.
// Validation windows come from the parts by turns, of each part in file order.
//
// P is a Feistel network over Philox (Luby and Rackoff 1988) on the next power
// of 4, walked until it is back inside the range (Black and Rogaway, "Ciphers
// with arbitrary finite domains", 2002): O(1) memory, below 4 walks on average.
#ifndef TROUPE_STORAGE_DATASET_DATA_ORDER_H_
#define TROUPE_STORAGE_DATASET_DATA_ORDER_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace troupe {

inline constexpr uint64_t kEpochsMax = uint64_t{1} << 52;

// Where in the permutation of [0, size) of (seed, epoch) `index` lies.
struct PermutationKey {
  uint64_t seed = 0;
  uint64_t epoch = 0;  // below kEpochsMax
};
// Requires index < size.
uint64_t Permute(const PermutationKey& key, uint64_t size, uint64_t index);

struct DataOrderOptions {
  uint64_t token_count = 0;        // of the file
  uint64_t sequence_length = 0;    // T
  double validation_fraction = 0;  // of the tokens of a part; in [0, 1)
  uint64_t validation_blocks = 1;  // B
  uint64_t seed = 0;
  // Records were packed into windows of T tokens: parts, and what they hold
  // back, are whole windows. Token w * T + T, which is a target only, may be of
  // another window or part; it does not count there.
  bool packed = false;
};

class DataOrder {
 public:
  // InvalidArgument, with the numbers and the way out, where a part is too
  // short for one training window, or for one validation window if any are
  // wanted.
  static absl::StatusOr<DataOrder> Create(const DataOrderOptions& options);

  uint64_t sequence_length() const { return options_.sequence_length; }
  uint64_t training_windows() const { return training_windows_; }
  // Zero where validation_fraction is.
  uint64_t validation_windows() const { return validation_windows_; }

  // The first token of sample `number`; its window is T + 1 tokens. Requires
  // number / training_windows() < kEpochsMax.
  uint64_t TrainingToken(uint64_t number) const;
  // Requires index < validation_windows().
  uint64_t ValidationToken(uint64_t index) const;

 private:
  explicit DataOrder(const DataOrderOptions& options) : options_(options) {}

  DataOrderOptions options_;
  uint64_t part_tokens_ = 0;
  uint64_t validation_begin_ = 0;  // first token, in a part
  uint64_t part_training_ = 0;     // windows of a part
  uint64_t training_windows_ = 0;
  uint64_t validation_windows_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_DATA_ORDER_H_
