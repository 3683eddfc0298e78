#include "worker/metrics/appended_file.h"

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<AppendedFile> AppendedFile::Open(const std::string& path,
                                                uint64_t bytes) {
  ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, IoMode::kReadWrite));
  return AppendedFile(std::move(file), bytes);
}

absl::Status AppendedFile::Append(absl::string_view record) {
  const absl::Status written = file_.WriteAt(bytes_, record);
  if (written.ok()) {
    bytes_ += record.size();
    return written;
  }
  // What a full disk took of it. Where this fails, too, the next record is
  // written over it.
  file_.Truncate(bytes_).IgnoreError();
  return written;
}

}  // namespace troupe
