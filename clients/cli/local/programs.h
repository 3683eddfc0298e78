// Where the daemons' programs are: beside `troupe`, where Bazel builds them, or
// on the PATH. The client does not link them; it runs them.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_PROGRAMS_H_
#define TROUPE_CLIENTS_CLI_LOCAL_PROGRAMS_H_

#include <string>

#include "absl/status/statusor.h"

namespace troupe {

struct ProgramSearch {
  std::string self;  // this program's own file
  std::string path;  // the value of PATH
};

// From this process.
ProgramSearch ThisProgram();

// The file of "troupe-scheduler" or "troupe-worker": in the folder of `self`;
// in `self`'s ../../scheduler or ../../worker, as in bazel-bin; in a folder of
// PATH. NotFound says where it was looked for.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const ProgramSearch& search);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_PROGRAMS_H_
