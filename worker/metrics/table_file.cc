#include "worker/metrics/table_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/job_lock.h"
#include "storage/disk/new_file.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/posix_file.h"

namespace troupe {
namespace {

constexpr size_t kTablePieceBytes = 1 << 20;
constexpr int kAsidesMax = 1000;

// The first bytes of a file.
absl::Status CopyBeginning(const std::string& from, uint64_t bytes,
                           const NewFile& to) {
  if (bytes == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(from, IoMode::kRead));
  std::string piece;
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(std::min<uint64_t>(kTablePieceBytes, bytes - at));
    RETURN_IF_ERROR(file.ReadAt(at, piece.size(), piece.data()));
    RETURN_IF_ERROR(to.WriteAt(at, piece));
  }
  return absl::OkStatus();
}

std::string StepsWords(int64_t first, int64_t last) {
  if (first == last) return absl::StrCat("step ", first);
  return absl::StrCat("steps ", first, " to ", last);
}

}  // namespace

TableFile::TableFile(const std::string& directory, const TableFormat& format,
                     const MetricsStart& start)
    : directory_(WithoutSlash(directory)),
      path_(absl::StrCat(directory_, "/", format.file_name)),
      format_(format),
      start_(start) {}

absl::StatusOr<std::vector<std::string>> TableFile::Start() {
  RETURN_IF_ERROR(MakeDirectories(directory_));
  RETURN_IF_ERROR(TakeLock());
  ASSIGN_OR_RETURN(const KeptRows kept,
                   FindKeptRows(path_, format_, start_.first_step));
  ASSIGN_OR_RETURN(const std::string aside, KeepAside(kept));
  RETURN_IF_ERROR(Replace(kept));
  return Notices(kept, aside);
}

absl::Status TableFile::TakeLock() {
  if (holds_) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      lock_, TakeJobLock({.directory = directory_,
                          .name = absl::StrCat(".", format_.file_name, ".lock"),
                          .holder = start_.holder,
                          .supersedes = start_.supersedes,
                          .writes = std::string(format_.file_name)}));
  holds_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> TableFile::KeepAside(const KeptRows& kept) const {
  const bool anew = start_.first_step == 1 && !start_.ran_before;
  if (!kept.has_foreign && (!anew || kept.void_rows == 0)) return "";
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path_, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  for (int i = 1; i <= kAsidesMax; ++i) {
    const std::string aside = absl::StrCat(path_, ".", i);
    struct stat info;
    if (LstatPath(aside, &info) == 0) continue;
    if (errno != ENOENT)
      return ErrnoStatus(errno, absl::StrCat(aside, ": stat"));
    ASSIGN_OR_RETURN(NewFile copy, NewFile::Create(aside));
    RETURN_IF_ERROR(CopyBeginning(path_, bytes, copy));
    RETURN_IF_ERROR(copy.Commit());
    return aside;
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path_, ": earlier runs left ", kAsidesMax,
                   " files beside it; remove some, or give another directory"));
}

absl::Status TableFile::Replace(const KeptRows& kept) {
  if (lock_.has_value()) RETURN_IF_ERROR(RemoveAbandonedAsides(path_));
  ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path_));
  const std::string header = kept.bytes == 0 ? format_.header() : "";
  RETURN_IF_ERROR(CopyBeginning(path_, kept.bytes, file));
  RETURN_IF_ERROR(file.WriteAt(kept.bytes, header));
  RETURN_IF_ERROR(file.Commit());
  ASSIGN_OR_RETURN(file_,
                   AppendedFile::Open(path_, kept.bytes + header.size()));
  return absl::OkStatus();
}

std::vector<std::string> TableFile::Notices(const KeptRows& kept,
                                            const std::string& aside) const {
  std::vector<std::string> notices;
  if (kept.has_foreign) {
    notices.push_back(absl::StrCat(
        path_,
        " has lines that are no rows of these columns, in order; it is "
        "kept as ",
        aside, ", and its rows before the first such line go on"));
  } else if (!aside.empty()) {
    notices.push_back(absl::StrCat(path_,
                                   " has rows of an earlier run; it is "
                                   "kept as ",
                                   aside, " and begun anew"));
  }
  const int64_t before = start_.first_step - 1;
  const bool goes_on = start_.ran_before || kept.last_step > 0;
  if (goes_on && kept.last_step < before) {
    notices.push_back(absl::StrCat(
        path_, " has no rows of ", StepsWords(kept.last_step + 1, before),
        ": the worker that had them was lost before it wrote them, or wrote "
        "them on another machine"));
  }
  return notices;
}

absl::Status TableFile::Append(const MetricsRow& row) {
  return file_->Append(format_.line(row));
}

}  // namespace troupe
