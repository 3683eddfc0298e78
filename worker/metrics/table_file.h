// metrics.jsonl or metrics.csv: a line for each step, each step once, in order.
//
// An attempt that goes on from step k - 1 writes the file anew with the rows
// before k, and goes on in that: the file is replaced as a whole, so that an
// earlier attempt that may still run (a stopped process) writes into a file
// that has lost its name. A job that begins with step 1 keeps what an earlier
// run left there: metrics.jsonl.1, or the next number that is free. So does any
// job with lines that are not its own columns.
#ifndef TROUPE_WORKER_METRICS_TABLE_FILE_H_
#define TROUPE_WORKER_METRICS_TABLE_FILE_H_

#include <optional>
#include <string>
#include <vector>

#include "storage/disk/file_lock.h"
#include "worker/metrics/appended_file.h"
#include "worker/metrics/kept_rows.h"
#include "worker/metrics/metrics_file.h"
#include "worker/metrics/table_format.h"

namespace troupe {

class TableFile final : public MetricsFile {
 public:
  // `format` is one of table_format.h.
  TableFile(const std::string& directory, const TableFormat& format,
            const MetricsStart& start);

  const std::string& path() const override { return path_; }
  // FailedPrecondition where another job writes there.
  absl::StatusOr<std::vector<std::string>> Start() override;
  absl::Status Append(const MetricsRow& row) override;
  absl::Status Sync() override { return file_->Sync(); }

 private:
  absl::Status TakeLock();
  // Where what is there was copied to; empty: nothing had to be.
  absl::StatusOr<std::string> KeepAside(const KeptRows& kept) const;
  absl::Status Replace(const KeptRows& kept);
  std::vector<std::string> Notices(const KeptRows& kept,
                                   const std::string& aside) const;

  const std::string directory_;
  const std::string path_;
  const TableFormat& format_;
  const MetricsStart start_;
  bool holds_ = false;
  std::optional<FileLock> lock_;  // none also where the file system has none
  std::optional<AppendedFile> file_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_METRICS_TABLE_FILE_H_
