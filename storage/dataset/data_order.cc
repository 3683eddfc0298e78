#include "storage/dataset/data_order.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"

namespace troupe {
namespace {

constexpr uint32_t kRounds = 8;

// The stream that one round of one epoch's network draws from.
PhiloxStream RoundStream(const PermutationKey& key, uint32_t round) {
  const uint32_t epoch_high = static_cast<uint32_t>(key.epoch >> 32);
  return {.seed = key.seed,
          .purpose = RandomPurpose::kDataOrder,
          .site = epoch_high << 4 | round,  // 24 bits
          .step = static_cast<uint32_t>(key.epoch)};
}

}  // namespace

uint64_t Permute(const PermutationKey& key, uint64_t size, uint64_t index) {
  CHECK_LT(index, size);
  CHECK_LT(key.epoch, kEpochsMax);
  uint32_t half_bits = 1;
  while (half_bits < 32 && uint64_t{1} << (2 * half_bits) < size) ++half_bits;
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t value = index;
  do {
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed =
          left ^ (PhiloxUint32(RoundStream(key, round), right) & mask);
      left = right;
      right = mixed;
    }
    value = left << half_bits | right;
  } while (value >= size);
  return value;
}

absl::StatusOr<DataOrder> DataOrder::Create(const DataOrderOptions& options) {
  const double fraction = options.validation_fraction;
  if (!(fraction >= 0 && fraction < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "validation_fraction ", fraction, "; it must be in [0, 1)"));
  }
  const uint64_t length = options.sequence_length;
  if (length == 0) {
    return absl::InvalidArgumentError("sequence_length must be at least 1");
  }
  const uint64_t blocks = options.validation_blocks;
  if (blocks == 0) {
    return absl::InvalidArgumentError("validation_blocks must be at least 1");
  }
  DataOrder order(options);
  // Of a file that is cut into parts, the fewer tokens than parts at its end
  // are in none.
  const bool packed = options.packed;
  const auto windows = [length, packed](uint64_t count) {
    return count == 0 ? 0 : (packed ? count : count - 1) / length;
  };
  // The last token of packed ones is a target only.
  const uint64_t tokens =
      packed
          ? (options.token_count - std::min<uint64_t>(options.token_count, 1)) /
                length / blocks * length
          : options.token_count / blocks;
  uint64_t validation_tokens =
      static_cast<uint64_t>(static_cast<double>(tokens) * fraction);
  if (packed) validation_tokens -= validation_tokens % length;
  order.part_tokens_ = tokens;
  order.validation_begin_ = tokens - validation_tokens;
  order.part_training_ = windows(order.validation_begin_);
  order.training_windows_ = order.part_training_ * blocks;
  order.validation_windows_ = windows(validation_tokens) * blocks;
  const std::string fewer_blocks =
      blocks > 1 ? ", or fewer validation_blocks" : "";
  const std::string of =
      blocks > 1
          ? absl::StrCat("each of ", blocks, " parts of ", tokens, " tokens ")
          : absl::StrCat(tokens, " tokens ");
  if (order.training_windows_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "of ", of, order.validation_begin_, " train (validation_fraction ",
        fraction, "), but sequence_length ", length, " needs ", length + 1,
        "; use a longer text or a shorter sequence_length", fewer_blocks));
  }
  if (fraction > 0 && order.validation_windows_ == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "of ", of, validation_tokens, " validate (validation_fraction ",
        fraction, "), but sequence_length ", length, " needs ", length + 1,
        "; use a longer text, a shorter sequence_length, a larger "
        "validation_fraction, or 0 for none",
        fewer_blocks));
  }
  return order;
}

uint64_t DataOrder::TrainingToken(uint64_t number) const {
  const PermutationKey key = {.seed = options_.seed,
                              .epoch = number / training_windows_};
  const uint64_t window =
      Permute(key, training_windows_, number % training_windows_);
  return window / part_training_ * part_tokens_ +
         window % part_training_ * options_.sequence_length;
}

uint64_t DataOrder::ValidationToken(uint64_t index) const {
  CHECK_LT(index, validation_windows_);
  const uint64_t blocks = options_.validation_blocks;
  return index % blocks * part_tokens_ + validation_begin_ +
         index / blocks * options_.sequence_length;
}

}  // namespace troupe
