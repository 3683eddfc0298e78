#include "storage/spill/stale_spill_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/file_lock.h"
#include "storage/engine/posix_file.h"
#include "storage/spill/spill_header.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool BeginsAsOurs(const std::string& path, uint64_t bytes) {
  if (bytes == 0) return true;
  const absl::StatusOr<PosixFile> file =
      PosixFile::Open(path, IoMode::kReadCached);
  std::string begin(std::min<uint64_t>(bytes, kSpillHeaderBytes), '\0');
  return file.ok() && file->ReadAt(0, begin.size(), begin.data()).ok() &&
         IsSpillHeader(begin);
}

// Taking the lock of a file that no process holds, and giving it up, removes
// the file. A process that makes a file of this name at this moment finds it
// locked and makes another.
bool Remove(const std::string& path) {
  // Were this process killed now, the file would still begin as ours.
  { const auto lock = FileLock::Take(path, SpillHeader({})); }
  std::error_code error;
  return !fs::exists(path, error);
}

}  // namespace

absl::StatusOr<StaleSpillFiles> RemoveStaleSpillFiles(
    const std::string& directory) {
  StaleSpillFiles stale;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string path = it->path();
    std::error_code none;
    if (!IsSpillName(it->path().filename().string()) ||
        !it->is_regular_file(none) || it->is_symlink(none)) {
      continue;
    }
    const uintmax_t bytes = it->file_size(none);
    if (none || FileLock::IsHeld(path) || !BeginsAsOurs(path, bytes)) continue;
    if (!Remove(path)) continue;
    ++stale.count;
    stale.bytes += bytes;
  }
  if (!error) return stale;
  return ErrnoStatus(error.value(), absl::StrCat(directory, ": list"));
}

}  // namespace troupe
