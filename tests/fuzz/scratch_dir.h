// A folder for the files that a fuzz target writes for its reader, removed when
// the process ends. One for each target, as a static of its function: making a
// folder for each of thousands of inputs a second would be most of the work.
#ifndef TROUPE_TESTS_FUZZ_SCRATCH_DIR_H_
#define TROUPE_TESTS_FUZZ_SCRATCH_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/base/check.h"

namespace troupe {

class ScratchDir {
 public:
  ScratchDir() { CHECK(mkdtemp(path_.data()) != nullptr) << path_; }
  ~ScratchDir() { std::filesystem::remove_all(path_); }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }

  // Makes or replaces the file, and gives back its path.
  std::string Write(absl::string_view name, absl::string_view bytes) const {
    const std::string path = path_ + "/" + std::string(name);
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    CHECK(out.good()) << path;
    return path;
  }

 private:
  std::string path_ =
      (std::filesystem::temp_directory_path() / "troupe-fuzz-XXXXXX").string();
};

}  // namespace troupe

#endif  // TROUPE_TESTS_FUZZ_SCRATCH_DIR_H_
