#include "clients/cli/write_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status WriteFile(const FileContent& file) {
  errno = 0;
  std::ofstream out(file.path, std::ios::binary | std::ios::trunc);
  out << file.content;
  out.close();
  if (out) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("cannot write ", file.path, ": ", std::strerror(errno)));
}

}  // namespace troupe
