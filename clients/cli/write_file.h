// Writing what a command was asked to put into a file.
#ifndef TROUPE_CLIENTS_CLI_WRITE_FILE_H_
#define TROUPE_CLIENTS_CLI_WRITE_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace troupe {

struct FileContent {
  std::string path;
  std::string content;
};

// Replaces the file: where that fails, what was there before stays. What is no
// file, as a pipe, is written to. Errors name the path and the reason.
absl::Status WriteFile(const FileContent& file);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_WRITE_FILE_H_
