// The names of the sums that every plan has (proto/plan/sums.h).
#ifndef TROUPE_PROTO_PLAN_SUM_NAMES_H_
#define TROUPE_PROTO_PLAN_SUM_NAMES_H_

namespace troupe {

inline constexpr char kLossSum[] = "loss";      // over tokens
inline constexpr char kTokensSum[] = "tokens";  // targets that were counted
inline constexpr char kSquaredNormSum[] = "squared_norm";  // of all gradients
// A rank that was asked to stop adds 1, and so does one that was asked to
// write a checkpoint: all ranks see it after the same step.
inline constexpr char kStopSum[] = "stop";
inline constexpr char kSaveSum[] = "save";

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SUM_NAMES_H_
