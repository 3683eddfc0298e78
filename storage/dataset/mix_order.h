// Which source of a mix each sample comes from. Shares are exact at every
// prefix, and so over any window: of the first n samples, source s has n w_s of
// them, w_s its weight over the sum, with an error below 1 (of a window: below
// 2). It is a pure function of the weights, so that any sample is found by its
// number.
//
// Weights are taken as whole multiples of 1 / P of their sum: exactly, where a
// P of up to a million is found for which they are, as for decimals of six
// places that add up to 1; else rounded to millionths of the sum. The order
// then repeats after P samples, and a table of one period answers for all of
// them. Within it samples are dealt by Tijdeman's algorithm ("The chairman
// assignment problem", Discrete Mathematics 32, 1980): of the sources that are
// due, the one whose next sample has the earliest deadline. Its error is at
// most 1 - 1 / (2 K - 2) for K sources.
#ifndef TROUPE_STORAGE_DATASET_MIX_ORDER_H_
#define TROUPE_STORAGE_DATASET_MIX_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace troupe {

class MixOrder {
 public:
  // InvalidArgument where there are no weights, more than 2^16, or one that is
  // not above 0 and finite, or too small beside the others to have a share.
  static absl::StatusOr<MixOrder> Create(absl::Span<const double> weights);

  size_t sources() const { return shares_.size(); }
  // P, and each source's share of it: samples of a period.
  uint64_t period() const { return table_.size(); }
  const std::vector<uint64_t>& shares() const { return shares_; }

  // Sample `number` is sample `index` of this source.
  struct Place {
    size_t source = 0;
    uint64_t index = 0;
  };
  Place PlaceOf(uint64_t number) const;

  // The most first samples of which no source has more than `available` says.
  uint64_t LongestWithin(absl::Span<const uint64_t> available) const;

 private:
  struct Entry {
    uint32_t source;
    uint32_t index;  // within the period
  };

  void FillTable();

  std::vector<uint64_t> shares_;
  std::vector<Entry> table_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_MIX_ORDER_H_
