// How long things took, by what they were: percentiles of all that was added.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_LATENCIES_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_LATENCIES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe {

// Thread-safe.
class Latencies {
 public:
  void Add(const std::string& what, absl::Duration took);

  struct Row {
    std::string what;
    int count = 0;
    double p50_ms = 0;
    double p99_ms = 0;
    double max_ms = 0;
  };
  // By name.
  std::vector<Row> Rows() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::vector<double>> ms_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_LATENCIES_H_
