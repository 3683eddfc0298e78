// Writes the rows of one file on a thread of its own, so that a disk never
// delays a step, and a disk that is full or gone costs rows and no training.
//
//   MetricsWriter writer(std::move(file), {.notice = say});
//   writer.Add(row);                      // after each step; never waits
//   writer.Close(absl::Seconds(5));       // at the attempt's end
//
// Rows that the disk does not take wait: the first of them is tried again after
// retry_first, then after twice as long, up to retry_max. Past rows_max new
// rows are left out. The job's user is told when that begins and when it is
// over, with the number of rows that are missing.
#ifndef TROUPE_WORKER_METRICS_METRICS_WRITER_H_
#define TROUPE_WORKER_METRICS_METRICS_WRITER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "worker/metrics/metrics_file.h"

namespace troupe {

struct MetricsWriterOptions {
  // What the job's user should hear of. Called by the writer's thread, and by
  // those that Add and Close; not after Close.
  std::function<void(const std::string& text)> notice;
  // Whether the file was started already.
  bool started = false;
  size_t rows_max = 10'000;  // that wait; a few MB
  absl::Duration retry_first = absl::Seconds(1);
  absl::Duration retry_max = absl::Seconds(30);
  absl::Duration sync_every = absl::Seconds(1);
};

class MetricsWriter {
 public:
  using Row = std::shared_ptr<const MetricsRow>;

  MetricsWriter(std::unique_ptr<MetricsFile> file,
                const MetricsWriterOptions& options);
  // Closes without patience.
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // From one thread at a time, by ascending steps.
  void Add(Row row);

  // Waits until all rows are written and synced, or one cannot be, but no
  // longer than `patience`: a disk that hangs may keep the thread, which then
  // ends by itself and tells nobody. Rows that are not written are left out.
  void Close(absl::Duration patience);

 private:
  struct State;
  class Thread;

  const std::shared_ptr<State> state_;  // the thread may outlive the writer
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_METRICS_WRITER_H_
