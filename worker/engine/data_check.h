// Whether a token file still has the bytes that were written into it: reads it
// all beside the job's first steps, on a thread of the lowest priority, and
// compares its checksum. Flipped bytes would train another model in silence.
//
//   DataCheck check(reader.file());
//   ... in each step: RETURN_IF_ERROR(check.status());
//   RETURN_IF_ERROR(check.AwaitEnd(absl::Seconds(10)));
#ifndef TROUPE_WORKER_ENGINE_DATA_CHECK_H_
#define TROUPE_WORKER_ENGINE_DATA_CHECK_H_

#include <atomic>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"
#include "storage/dataset/token_file.h"

namespace troupe {

class DataCheck {
 public:
  // Borrows the file.
  explicit DataCheck(const TokenFile& file);
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
  const TokenFile& file_;
  std::atomic<bool> give_up_{false};
  absl::Status status_;  // once done_
  SteadyNotification done_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_DATA_CHECK_H_
