#include "proto/base/file_text.h"

#include <algorithm>
#include <fstream>

namespace troupe {

absl::optional<std::string> FileText(const std::string& path,
                                     size_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  // In pieces: files of the kernel do not say how long they are.
  char piece[1 << 14];
  while (file && text.size() < bytes_max) {
    file.read(piece, static_cast<std::streamsize>(
                         std::min(sizeof(piece), bytes_max - text.size())));
    text.append(piece, static_cast<size_t>(file.gcount()));
  }
  if (!file.is_open() || file.bad()) return absl::nullopt;
  return text;
}

}  // namespace troupe
