#include "worker/metrics/kept_rows.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kLineBytesMax = 64 << 10;  // ours have a few hundred

// Looks at one line after the other, in the order of the file.
class RowScan {
 public:
  RowScan(const TableFormat& format, int64_t first_step)
      : header_(format.header()), format_(format), first_step_(first_step) {}

  // A line without its end. Whether the next one is to be looked at.
  bool Add(absl::string_view line) {
    const uint64_t bytes = line.size() + 1;
    if (expects_header_ && !header_.empty()) {
      expects_header_ = false;
      if (absl::StrCat(line, "\n") != header_) return Foreign();
      kept_.bytes = bytes;
      return true;
    }
    const absl::optional<int64_t> step = format_.step(line);
    if (!step.has_value() || *step <= last_seen_) return Foreign();
    last_seen_ = *step;
    if (*step >= first_step_) {
      if (kept_.void_rows++ == 0) kept_.void_first = *step;
      return true;
    }
    kept_.bytes += bytes;
    kept_.last_step = *step;
    return true;
  }

  bool Foreign() {
    kept_.has_foreign = true;
    return false;
  }

  const KeptRows& kept() const { return kept_; }

 private:
  const std::string header_;
  const TableFormat& format_;
  const int64_t first_step_;
  bool expects_header_ = true;
  int64_t last_seen_ = 0;
  KeptRows kept_;
};

}  // namespace

absl::StatusOr<KeptRows> FindKeptRows(const std::string& path,
                                      const TableFormat& format,
                                      int64_t first_step) {
  struct stat info;
  if (StatPath(path, &info) != 0) {
    if (errno == ENOENT) return KeptRows();
    return ErrnoStatus(errno, absl::StrCat(path, ": stat"));
  }
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  RowScan scan(format, first_step);
  std::string text;  // the beginning of a line, then the next piece
  for (uint64_t at = 0; at < bytes;) {
    const size_t more = std::min<uint64_t>(kPieceBytes, bytes - at);
    const size_t begun = text.size();
    text.resize(begun + more);
    RETURN_IF_ERROR(file.ReadAt(at, more, &text[begun]));
    at += more;
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
      const absl::string_view line(&text[begin], end - begin);
      if (!scan.Add(line)) return scan.kept();
      begin = end + 1;
    }
    text.erase(0, begin);
    if (text.size() > kLineBytesMax) {
      scan.Foreign();
      break;
    }
  }
  return scan.kept();
}

}  // namespace troupe
