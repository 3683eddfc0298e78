// The metrics files of a job, as the worker of rank 0 writes them
// (docs/metrics.md): metrics.jsonl and metrics.csv in metrics.directory, an
// event file in metrics.tensorboard.
//
//   ASSIGN_OR_RETURN(auto metrics, RankMetrics::Open(job.metrics(), options));
//   metrics->Add(record);   // after each step; never waits for a disk
//   metrics->Close();       // before the attempt's last word
#ifndef TROUPE_WORKER_METRICS_RANK_METRICS_H_
#define TROUPE_WORKER_METRICS_RANK_METRICS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/job.pb.h"
#include "proto/status.pb.h"
#include "worker/metrics/metrics_file.h"
#include "worker/metrics/metrics_writer.h"

namespace troupe {

struct RankMetricsOptions {
  MetricsStart start;
  int attempt = 1;
  const Clock& clock;  // outlives the metrics
  // What the job's user should hear of (metrics_writer.h).
  std::function<void(const std::string& text)> notice;
  // At the end, for what waits, on all disks together.
  absl::Duration close_patience = absl::Seconds(5);
};

// One thread at a time.
class RankMetrics {
 public:
  // Null where there are none. REQUIRES a resolved job's. The first attempt
  // of a job fails where a file cannot be written; the errors begin with the
  // field's path. A later one goes on, and tries again beside training.
  static absl::StatusOr<std::unique_ptr<RankMetrics>> Open(
      const MetricsSpec& spec, const RankMetricsOptions& options);
  ~RankMetrics();

  void Add(const StepRecord& record);
  // Files are complete then, but for what a disk did not take. Call once.
  void Close();

 private:
  explicit RankMetrics(const RankMetricsOptions& options) : options_(options) {}

  const RankMetricsOptions options_;
  std::vector<std::unique_ptr<MetricsWriter>> writers_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_RANK_METRICS_H_
