// The rows of scheduler/collectives that a job names (`communication`).
#ifndef TROUPE_SCHEDULER_PLANNER_NAMED_ROWS_H_
#define TROUPE_SCHEDULER_PLANNER_NAMED_ROWS_H_

#include <string>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// Whether there are other rows than flat for it; a job may name one then.
bool HasRows(Collective collective);

// "communication.all_reduce". REQUIRES HasRows.
std::string RowFieldOf(Collective collective);

// The row that the job names for a collective, for a reduce that of all-reduces
// (WayCollective); empty: none.
std::string RowNamedFor(const CommunicationSpec& communication,
                        Collective collective);

// Sets nothing: "auto" is as if it were left out. InvalidArgument: names of
// rows that there are not.
absl::Status CheckCommunication(const CommunicationSpec& communication);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_NAMED_ROWS_H_
