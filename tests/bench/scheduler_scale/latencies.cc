#include "tests/bench/scheduler_scale/latencies.h"

#include <algorithm>

namespace troupe {
namespace {

// The smallest value that is not below this part of all.
double Percentile(const std::vector<double>& sorted, double part) {
  const size_t index = static_cast<size_t>(part * sorted.size());
  return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace

void Latencies::Add(const std::string& what, absl::Duration took) {
  absl::MutexLock lock(&mutex_);
  ms_[what].push_back(absl::ToDoubleMilliseconds(took));
}

std::vector<Latencies::Row> Latencies::Rows() const {
  absl::MutexLock lock(&mutex_);
  std::vector<Row> rows;
  for (const auto& [what, unsorted] : ms_) {
    std::vector<double> sorted = unsorted;
    std::sort(sorted.begin(), sorted.end());
    rows.push_back({.what = what,
                    .count = static_cast<int>(sorted.size()),
                    .p50_ms = Percentile(sorted, 0.5),
                    .p99_ms = Percentile(sorted, 0.99),
                    .max_ms = sorted.back()});
  }
  return rows;
}

}  // namespace troupe
