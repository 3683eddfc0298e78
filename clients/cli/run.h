// The whole program but for its process: arguments in, exit code out. main.cc
// hands it the real streams, tests their own.
#ifndef TROUPE_CLIENTS_CLI_RUN_H_
#define TROUPE_CLIENTS_CLI_RUN_H_

#include <string>
#include <vector>

#include "clients/cli/command.h"

namespace troupe {

// `arguments` without the program's name. The process's exit code: 0; 1 after
// an error, which is one line on console.err; 2 for a command line that is
// wrong; 130 after Ctrl-C.
int RunTroupe(const std::vector<std::string>& arguments, Console& console);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_RUN_H_
