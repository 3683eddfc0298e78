// Whether token files still have the bytes that were written into them: reads
// them beside the job's first steps, on a thread of the lowest priority, and
// compares their checksums. Flipped bytes would train another model in silence.
//
//   DataCheck check(reader.files());
//   ... in each step: RETURN_IF_ERROR(check.status());
//   RETURN_IF_ERROR(check.AwaitEnd(absl::Seconds(10)));
#ifndef TROUPE_WORKER_ENGINE_DATA_CHECK_H_
#define TROUPE_WORKER_ENGINE_DATA_CHECK_H_

#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"
#include "storage/dataset/token_file.h"

namespace troupe {

class DataCheck {
 public:
  // Borrows the files.
  explicit DataCheck(std::vector<const TokenFile*> files);
  // Gives up what is not read yet.
  ~DataCheck();
  DataCheck(const DataCheck&) = delete;
  DataCheck& operator=(const DataCheck&) = delete;

  // DataLoss that names data.tokens and the file, once that is known; does not
  // wait.
  absl::Status status() const;

  // Whether it is known that they are as they were written; does not wait.
  bool holds() const;

  // status(), but waits so long for the end of the check; where it does not
  // come, the log says so and the result is OK.
  absl::Status AwaitEnd(absl::Duration patience) const;

 private:
  absl::Status CheckAll() const;

  const std::vector<const TokenFile*> files_;
  std::atomic<bool> give_up_{false};
  absl::Status status_;  // once done_
  SteadyNotification done_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_DATA_CHECK_H_
