#include "scheduler/simulate/datasheet_peak.h"

#include <cstddef>

namespace troupe {
namespace {

double RateOf(const WorkerDescription& worker, ElementType type) {
  for (const DatasheetRate& rate : worker.datasheet()) {
    if (rate.dtype() == type) return rate.flops_per_second();
  }
  return 0;
}

}  // namespace

double DatasheetPeak(ElementType type,
                     absl::Span<const WorkerDescription> workers,
                     const Seats& seats) {
  double peak = 0;
  for (size_t r = 0; r < workers.size(); ++r) {
    const double rate = RateOf(workers[r], type);
    if (!(rate > 0)) return 0;
    peak += rate * seats.FairShare(static_cast<int>(r));
  }
  return peak;
}

}  // namespace troupe
