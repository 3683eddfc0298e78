#include "storage/spill/reserved_file.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/local_cause.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"
#include "storage/engine/posix_file.h"
#include "storage/spill/spill_header.h"

namespace troupe {
namespace {

// Names are drawn from four billion; this number in a row is not taken by
// chance.
constexpr int kNamesMax = 8;

std::string GiB(uint64_t bytes) {
  return absl::StrFormat("%.2f GiB", static_cast<double>(bytes) * 0x1p-30);
}

absl::Status CheckRoom(const std::string& directory, uint64_t bytes) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error) {
    return ErrnoStatus(error.value(), absl::StrCat(directory, ": statvfs"));
  }
  if (space.available >= bytes) return absl::OkStatus();
  return OfThisMachine(absl::ResourceExhaustedError(absl::StrCat(
      directory, ": ", GiB(bytes), " are wanted, ", GiB(space.available),
      " are free; lower the tier's budget, free space or choose another "
      "directory")));
}

// A file under a new name, locked, with the header in it.
absl::StatusOr<ReservedFile> MakeLocked(const std::string& directory,
                                        const std::string& header) {
  for (int i = 0; i < kNamesMax; ++i) {
    const std::string path = NewSpillPath(directory);
    std::error_code none;
    if (std::filesystem::exists(path, none)) continue;
    absl::StatusOr<FileLock> lock = FileLock::Take(path, header);
    if (lock.ok()) return ReservedFile{path, *std::move(lock)};
    // Somebody removes what is left there, and took this for it.
    if (!absl::IsFailedPrecondition(lock.status())) return lock.status();
  }
  return absl::UnavailableError(
      absl::StrCat(directory, ": others take each name for a file; see who"));
}

absl::Status Reserve(const std::string& path, uint64_t bytes) {
  ASSIGN_OR_RETURN(const PosixFile file,
                   PosixFile::Open(path, IoMode::kReadWrite));
  int result;
  do {
    result = fallocate(file.fd(), 0, 0, static_cast<off_t>(bytes));
  } while (result < 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  if (errno == EOPNOTSUPP) {
    return absl::UnimplementedError(
        absl::StrCat(path,
                     ": the file system cannot take room for a file before it "
                     "is written (fallocate); choose another directory"));
  }
  return ErrnoStatus(errno,
                     absl::StrCat(path, ": taking room for ", GiB(bytes)));
}

}  // namespace

absl::StatusOr<ReservedFile> ReserveFile(const std::string& directory,
                                         const std::string& header,
                                         uint64_t bytes) {
  RETURN_IF_ERROR(CheckRoom(directory, bytes));
  ASSIGN_OR_RETURN(ReservedFile made, MakeLocked(directory, header));
  RETURN_IF_ERROR(Reserve(made.path, bytes));
  return made;
}

}  // namespace troupe
