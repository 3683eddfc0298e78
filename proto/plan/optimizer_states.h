// The states that an optimizer keeps beside each parameter, all f32. They are
// the parts of OPTIMIZER_STATE and of a recovery copy, in this order, and
// tensors of a checkpoint. Whoever lays out, counts, writes or reads them asks
// here: a writer that assumes a state which nobody keeps reads what lies behind
// the buffer.
#ifndef TROUPE_PROTO_PLAN_OPTIMIZER_STATES_H_
#define TROUPE_PROTO_PLAN_OPTIMIZER_STATES_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace troupe {

// AdamW: "exp_avg", "exp_avg_sq"; SGD with momentum: "momentum"; else none.
// REQUIRES a resolved spec, as all below.
inline absl::Span<const absl::string_view> OptimizerStates(
    const OptimizerSpec& optimizer) {
  static constexpr absl::string_view kAdamW[] = {"exp_avg", "exp_avg_sq"};
  static constexpr absl::string_view kSgd[] = {"momentum"};
  if (optimizer.name() == "adamw") return kAdamW;
  if (optimizer.name() == "sgd" && optimizer.momentum() != 0) return kSgd;
  return {};
}

// How many they are.
inline int OptimizerMoments(const OptimizerSpec& optimizer) {
  return static_cast<int>(OptimizerStates(optimizer).size());
}

// Its name in a checkpoint: "optimizer.exp_avg.transformer.wte.weight".
inline constexpr absl::string_view kStateTensors = "optimizer.";
inline std::string StateTensorName(absl::string_view state,
                                   absl::string_view parameter) {
  return absl::StrCat(kStateTensors, state, ".", parameter);
}
inline bool IsStateTensor(absl::string_view name) {
  return absl::StartsWith(name, kStateTensors);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPTIMIZER_STATES_H_
