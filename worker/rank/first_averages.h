// What averages of weights (optimizer.ema) are as they begin: the weights.
#ifndef TROUPE_WORKER_RANK_FIRST_AVERAGES_H_
#define TROUPE_WORKER_RANK_FIRST_AVERAGES_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/rank/tier_port.h"
#include "worker/rank/unit_state.h"

namespace troupe {

// Sets the averages among a rank's tensors for which `begins` says so, by the
// name of the average's tensor. REQUIRES that the weights are set. Errors are
// the disk's.
absl::Status BeginAverages(
    const std::vector<StateTensor>& tensors, TierPort& port,
    absl::FunctionRef<bool(absl::string_view name)> begins);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FIRST_AVERAGES_H_
