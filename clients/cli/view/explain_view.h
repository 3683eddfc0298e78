// `troupe plan --explain` for people: a table of the ways in which a job's
// ranks could share its work, the best first, and why the others cannot be
// planned.
#ifndef TROUPE_CLIENTS_CLI_VIEW_EXPLAIN_VIEW_H_
#define TROUPE_CLIENTS_CLI_VIEW_EXPLAIN_VIEW_H_

#include <string>

#include "proto/explanation.pb.h"

namespace troupe {

// "data: 2, context: 4, context_method: ring", as in the job file.
std::string WayText(const WayFields& fields);

// Of many ways the quickest, the job as it is, and the quickest of each layout;
// the rest is counted. Lines are 110 columns wide at most.
std::string ExplanationText(const Explanation& explanation);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_EXPLAIN_VIEW_H_
