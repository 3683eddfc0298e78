// Whether token files still have the bytes that were written into them: reads
// them beside the job's first steps, on a thread of the lowest priority, and
// compares their checksums. Flipped bytes would train another model in silence.
//
//   DataCheck check(CheckedFilesOf(job.data(), reader));
//   ... in each step: RETURN_IF_ERROR(check.status());
//   RETURN_IF_ERROR(check.AwaitEnd(absl::Seconds(10)));
#ifndef TROUPE_WORKER_ENGINE_DATA_CHECK_H_
#define TROUPE_WORKER_ENGINE_DATA_CHECK_H_

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"
#include "proto/job.pb.h"
#include "storage/dataset/sample_reader.h"
#include "storage/dataset/token_file.h"

namespace troupe {

struct CheckedFile {
  std::string field;  // of the job, that names it: "data.validation"
  const TokenFile* file = nullptr;
};

// Of the data that the reader of a job has open.
std::vector<CheckedFile> CheckedFilesOf(const DataSpec& data,
                                        const SampleReader& reader);

class DataCheck {
 public:
  // Borrows the files, of which there is one at least.
  explicit DataCheck(std::vector<CheckedFile> files);
  // Gives up what is not read yet.
  ~DataCheck();
  DataCheck(const DataCheck&) = delete;
  DataCheck& operator=(const DataCheck&) = delete;

  // DataLoss that names the field and the file, once that is known; does not
  // wait.
  absl::Status status() const;

  // Whether it is known that they are as they were written; does not wait.
  bool holds() const;

  // status(), but waits so long for the end of the check; where it does not
  // come, the log says so and the result is OK.
  absl::Status AwaitEnd(absl::Duration patience) const;

 private:
  absl::Status CheckAll() const;

  const std::vector<CheckedFile> files_;
  std::atomic<bool> give_up_{false};
  absl::Status status_;  // once done_
  SteadyNotification done_;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_DATA_CHECK_H_
