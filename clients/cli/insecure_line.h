// What is said, in red, of a cluster without certificates.
#ifndef TROUPE_CLIENTS_CLI_INSECURE_LINE_H_
#define TROUPE_CLIENTS_CLI_INSECURE_LINE_H_

#include <string>

#include "clients/cli/command.h"

namespace troupe {

// Without its end; in colour where the console is a terminal.
std::string InsecureLine(const Console& console);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_INSECURE_LINE_H_
