// A TensorBoard event file: a scalar for each number of each step. It is a
// sequence of proto/tensorboard.proto's events, each in TFRecord's framing
// (tensorflow/core/lib/io/record_writer.h):
//
//   u64 length   u32 masked CRC-32C of it   bytes   u32 masked CRC-32C of them
//
// Each attempt has a file of its own, whose name sorts behind those of earlier
// ones, and which begins with a SessionLog START: TensorBoard drops what
// earlier files of the folder have of its step and later ones.
#ifndef TROUPE_WORKER_METRICS_EVENT_FILE_H_
#define TROUPE_WORKER_METRICS_EVENT_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/metrics/appended_file.h"
#include "worker/metrics/metrics_file.h"

namespace troupe {

// `data` as one record.
std::string FramedRecord(absl::string_view data);

// CRC-32C as TFRecord stores it: of a file that holds checksums of itself.
uint32_t MaskedCrc32c(absl::string_view data);

class EventFile final : public MetricsFile {
 public:
  // `now`: when the attempt begins, of the wall clock.
  EventFile(const std::string& folder, int64_t first_step, absl::Time now);

  const std::string& path() const override { return path_; }
  absl::StatusOr<std::vector<std::string>> Start() override;
  absl::Status Append(const MetricsRow& row) override;
  absl::Status Sync() override { return file_->Sync(); }

 private:
  const std::string folder_;
  const int64_t first_step_;
  const absl::Time now_;
  std::string path_;  // first the folder's
  std::optional<AppendedFile> file_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_EVENT_FILE_H_
