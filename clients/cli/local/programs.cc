#include "clients/cli/local/programs.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

bool IsProgram(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
}

}  // namespace

ProgramSearch ThisProgram() {
  std::error_code error;
  const char* path = std::getenv("PATH");
  return {.self = fs::read_symlink("/proc/self/exe", error).string(),
          .path = path == nullptr ? "" : path};
}

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const ProgramSearch& search) {
  const fs::path folder = fs::path(search.self).parent_path();
  const std::string floor(absl::StripPrefix(name, "troupe-"));
  std::vector<fs::path> places = {
      folder / name,
      (folder / ".." / ".." / floor / name).lexically_normal(),
  };
  for (absl::string_view entry :
       absl::StrSplit(search.path, ':', absl::SkipEmpty())) {
    places.push_back(fs::path(std::string(entry)) / name);
  }
  for (const fs::path& place : places) {
    if (IsProgram(place)) return place.string();
  }
  return absl::NotFoundError(absl::StrCat(
      "cannot find ", name, " beside troupe (", places[0].string(), "), in ",
      places[1].string(), ", or on the PATH; build it with: bazel build //",
      floor, ":", name));
}

}  // namespace troupe
