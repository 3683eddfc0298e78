// The line that `down` and `up --foreground` print while members take their
// time: "waiting for worker-0, worker-1 to end; 29 s until they are killed", or
// "waiting for worker-0 to save its job; troupe down --now --dir DIR kills it".
#ifndef TROUPE_CLIENTS_CLI_LOCAL_SAY_WAITING_H_
#define TROUPE_CLIENTS_CLI_LOCAL_SAY_WAITING_H_

#include <iosfwd>
#include <string>

#include "clients/cli/local/end_members.h"

namespace troupe {

// Borrows `out`. `way_out`: what a user does who will not wait.
WaitNews SayWaiting(std::ostream& out, const std::string& way_out);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_SAY_WAITING_H_
