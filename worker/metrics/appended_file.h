// A file that grows by whole records: one that the disk did not take is not
// there in part, so that it may be appended again.
#ifndef TROUPE_WORKER_METRICS_APPENDED_FILE_H_
#define TROUPE_WORKER_METRICS_APPENDED_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/engine/posix_file.h"

namespace troupe {

class AppendedFile {
 public:
  // Made where it is missing. Goes on behind its first `bytes` bytes.
  static absl::StatusOr<AppendedFile> Open(const std::string& path,
                                           uint64_t bytes);

  uint64_t bytes() const { return bytes_; }
  // The errors name the file.
  absl::Status Append(absl::string_view record);
  absl::Status Sync() const { return file_.Sync(); }

 private:
  AppendedFile(PosixFile file, uint64_t bytes)
      : file_(std::move(file)), bytes_(bytes) {}

  PosixFile file_;
  uint64_t bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_APPENDED_FILE_H_
