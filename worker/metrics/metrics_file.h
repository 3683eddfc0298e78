// A file that gets a row for each step: metrics.jsonl, metrics.csv, a
// TensorBoard event file. One thread at a time, which may wait for the disk as
// long as that takes (metrics_writer.h).
#ifndef TROUPE_WORKER_METRICS_METRICS_FILE_H_
#define TROUPE_WORKER_METRICS_METRICS_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/metrics/metrics_row.h"

namespace troupe {

// What the rows that will come go on from.
struct MetricsStart {
  int64_t first_step = 1;  // of this attempt; rows of it and later are void
  // An earlier attempt of the job ran: what lies there is the job's own.
  bool ran_before = false;
  std::string holder = "";  // the one that writes, for others' messages
  // In the line of a holder that is superseded: an earlier attempt of the job.
  std::string supersedes = "";
};

class MetricsFile {
 public:
  virtual ~MetricsFile() = default;

  // For messages; before Start the folder of a file that has no name yet.
  virtual const std::string& path() const = 0;

  // Makes it ready for the first row: what is void is taken away. Says what the
  // job's user should hear of. After an error it may be called again.
  virtual absl::StatusOr<std::vector<std::string>> Start() = 0;

  // All of the row, or nothing of it. REQUIRES that Start succeeded, and a
  // later step than that of the row before.
  virtual absl::Status Append(const MetricsRow& row) = 0;

  // What was appended survives a loss of power.
  virtual absl::Status Sync() = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_METRICS_FILE_H_
