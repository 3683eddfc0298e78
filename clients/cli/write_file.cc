#include "clients/cli/write_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/new_file.h"

namespace troupe {
namespace {

// In place: a pipe, a device, or a file in a directory that takes no other.
absl::Status WriteInto(const FileContent& file) {
  errno = 0;
  std::ofstream out(file.path, std::ios::binary | std::ios::trunc);
  out << file.content;
  out.close();
  if (out) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("cannot write ", file.path, ": ", std::strerror(errno)));
}

}  // namespace

absl::Status WriteFile(const FileContent& file) {
  if (!ReplaceablePath(file.path).ok()) return WriteInto(file);
  const absl::Status written = ReplaceFile(file.path, file.content);
  if (absl::IsPermissionDenied(written) || absl::IsNotFound(written)) {
    return WriteInto(file);
  }
  return Annotate(written, "cannot write");
}

}  // namespace troupe
