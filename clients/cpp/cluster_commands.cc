#include "clients/cpp/cluster_commands.h"

#include "absl/strings/str_cat.h"
#include "proto/base/shell_word.h"

namespace troupe {

std::string UpCommand(const std::string& dir, int workers) {
  return absl::StrCat("troupe up --workers ",
                      workers == 0 ? "N" : absl::StrCat(workers), " --dir ",
                      ShellWord(dir));
}

std::string DownCommand(const std::string& dir) {
  return absl::StrCat("troupe down --dir ", ShellWord(dir));
}

}  // namespace troupe
