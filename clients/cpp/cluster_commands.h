// The commands that bring a cluster up and down, in messages that say what to
// type next: quoted, so that they can be copied.
#ifndef TROUPE_CLIENTS_CPP_CLUSTER_COMMANDS_H_
#define TROUPE_CLIENTS_CPP_CLUSTER_COMMANDS_H_

#include <string>

namespace troupe {

// "troupe up --workers 4 --dir DIR"; "N" in place of a number that is unknown.
std::string UpCommand(const std::string& dir, int workers = 0);
// "troupe down --dir DIR"
std::string DownCommand(const std::string& dir);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_CLUSTER_COMMANDS_H_
