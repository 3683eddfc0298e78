// The lines of `troupe plan` about replicas: what they share and what each has.
#ifndef TROUPE_CLIENTS_CLI_VIEW_REPLICAS_TEXT_H_
#define TROUPE_CLIENTS_CLI_VIEW_REPLICAS_TEXT_H_

#include <string>

#include "proto/plan.pb.h"

namespace troupe {

// Parameter servers, islands, micro-batches of each replica, and slices of
// unlike sizes: a line for each that the plan has, which ends with a newline.
std::string ReplicasText(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_REPLICAS_TEXT_H_
