// The part of a plan's view that says how exchanges between hosts are carried
// out, and what each level takes of them.
#ifndef TROUPE_CLIENTS_CLI_VIEW_EXCHANGES_TEXT_H_
#define TROUPE_CLIENTS_CLI_VIEW_EXCHANGES_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"

namespace troupe {

// "  exchanges        data: all-reduce of 24 MiB by 4 ranks: two_level 31 ms
// (flat 48 ms): within hosts of 2: 24 MiB, 12 ms; across hosts of 2: 12 MiB, 19
// ms", a line for each of the largest; further ones begin with `next_line`. Of
// groups that are flat why. Empty where no group spans hosts.
std::string ExchangesText(const Plan& plan, absl::string_view next_line);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_EXCHANGES_TEXT_H_
