#include "worker/calibrate/link_rate.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

constexpr int kSmallRepeats = 100;
constexpr absl::Duration kTimeout = absl::Seconds(10);

// Seconds of one all-reduce of `values`, the fastest of `repeats`.
absl::StatusOr<double> SecondsOfAllReduce(Communicator& communicator,
                                          const Clock& clock,
                                          absl::Span<float> values,
                                          int repeats) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    RETURN_IF_ERROR(communicator.Barrier({.timeout = kTimeout}));
    const int64_t begin = clock.MonotonicNanos();
    RETURN_IF_ERROR(
        communicator.AllReduce(CommBuffer::Of(values), ReduceOp::kSum,
                               {.name = "calibration", .timeout = kTimeout}));
    best = std::min(best, (clock.MonotonicNanos() - begin) * 1e-9);
  }
  return best;
}

absl::StatusOr<LinkRate> MeasureAsRank(int rank, const std::string& backend,
                                       KeyValueStore& store, const Clock& clock,
                                       const LinkRateOptions& options) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> communicator,
                   CreateCommunicator(backend, {.group = {.name = "calibration",
                                                          .ranks = {0, 1}},
                                                .rank = rank,
                                                .store = &store,
                                                .timeout = kTimeout}));
  std::vector<float> values(options.bytes / sizeof(float));
  const absl::Span<float> all(values);
  ASSIGN_OR_RETURN(
      const double small,
      SecondsOfAllReduce(*communicator, clock, all.first(1), kSmallRepeats));
  ASSIGN_OR_RETURN(
      const double large,
      SecondsOfAllReduce(*communicator, clock, all, options.repeats));
  LinkRate rate;
  rate.set_latency_us(small / 2 * 1e6);
  rate.set_bytes_per_second(options.bytes /
                            std::max(large - small, large / 10));
  return rate;
}

}  // namespace

absl::StatusOr<LinkRate> MeasureLink(const std::string& backend,
                                     const Clock& clock,
                                     const LinkRateOptions& options) {
  InMemoryStore store;
  std::array<absl::StatusOr<LinkRate>, 2> rates;
  std::array<std::thread, 2> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = std::thread([&, rank] {
      rates[rank] = MeasureAsRank(rank, backend, store, clock, options);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const absl::StatusOr<LinkRate>& rate : rates) {
    if (!rate.ok()) {
      return Annotate(rate.status(), absl::StrCat("link over ", backend));
    }
  }
  return rates[0];
}

}  // namespace troupe
