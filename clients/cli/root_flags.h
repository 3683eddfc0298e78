// --root NAME=DIR of commands that read what a job names: where a root of the
// workers lies on this machine, so that `NAME:path` can be read here.
//
//   root_flags_.Declare(flags);                         // in Declare
//   ASSIGN_OR_RETURN(const auto roots, root_flags_.Install());   // in Run
#ifndef TROUPE_CLIENTS_CLI_ROOT_FLAGS_H_
#define TROUPE_CLIENTS_CLI_ROOT_FLAGS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/flags.h"
#include "storage/disk/roots.h"

namespace troupe {

class RootFlags {
 public:
  void Declare(Flags& flags);

  // While the result lives they are there. Those of Roots::Install.
  absl::StatusOr<std::unique_ptr<Roots>> Install() const {
    return Roots::Install(said_);
  }

 private:
  std::vector<std::string> said_;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_ROOT_FLAGS_H_
