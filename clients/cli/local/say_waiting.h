// The line that `down` and `up --foreground` print while members take their
// time: "waiting for worker-0, worker-1 to save and end; 29 s until they are
// killed".
#ifndef TROUPE_CLIENTS_CLI_LOCAL_SAY_WAITING_H_
#define TROUPE_CLIENTS_CLI_LOCAL_SAY_WAITING_H_

#include <iosfwd>

#include "clients/cli/local/local_cluster.h"

namespace troupe {

// Borrows `out`.
WaitNews SayWaiting(std::ostream& out);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_SAY_WAITING_H_
