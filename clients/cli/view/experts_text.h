// The lines of `troupe plan` about experts that ranks share.
#ifndef TROUPE_CLIENTS_CLI_VIEW_EXPERTS_TEXT_H_
#define TROUPE_CLIENTS_CLI_VIEW_EXPERTS_TEXT_H_

#include <string>

#include "proto/plan.pb.h"

namespace troupe {

// Which rank has which, over how many ranks ZeRO partitions them and the rest
// of their layers, which load the prediction counts, and what the worst routing
// takes.
// Each line ends with a newline; those behind the first begin with `indent`.
// Empty where each rank has all experts of its layers.
std::string ExpertsText(const Plan& plan, const std::string& indent);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_EXPERTS_TEXT_H_
