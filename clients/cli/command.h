// What a subcommand is, and where it speaks to. commands/ has one file for
// each; command_table.cc lists them.
#ifndef TROUPE_CLIENTS_CLI_COMMAND_H_
#define TROUPE_CLIENTS_CLI_COMMAND_H_

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/cli/flags.h"

namespace troupe {

// The world around a command, so that tests can stand in for it.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;        // `out` is one
  int width = 80;               // its columns
  std::string environment_dir;  // the value of TROUPE_DIR
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void Declare(Flags& flags) = 0;
  // Runs after parsing. Cancelled: ended by Ctrl-C, exit code 130, nothing more
  // is said. InvalidArgument beginning with "usage: " exits with 2, any other
  // error with 1.
  virtual absl::Status Run(Console& console) = 0;
};

struct CommandRow {
  const char* name;     // "submit"; "data prepare" for a subcommand of a group
  const char* summary;  // one line of the help
  std::unique_ptr<Command> (*make)();
};

// All of them, in the order of the help.
std::vector<CommandRow> CommandTable();

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_COMMAND_H_
