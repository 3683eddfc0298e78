// The names of the sums that plans have (proto/plan/sums.h): first those of
// every plan.
#ifndef TROUPE_PROTO_PLAN_SUM_NAMES_H_
#define TROUPE_PROTO_PLAN_SUM_NAMES_H_

namespace troupe {

inline constexpr char kLossSum[] = "loss";      // over tokens
inline constexpr char kTokensSum[] = "tokens";  // targets that were counted
// Of losses that are added to the model's (Op.added_weight), over tokens and
// before they are multiplied by their weights.
inline constexpr char kAddedLossSum[] = "added_loss";
inline constexpr char kSquaredNormSum[] = "squared_norm";  // of all gradients
// A rank that was asked to stop adds 1, and so does one that was asked to
// write a checkpoint: all ranks see it after the same step.
inline constexpr char kStopSum[] = "stop";
inline constexpr char kSaveSum[] = "save";

// Where each step is one replica's, of what a server updates the weights with
// (status.proto, Turn).
inline constexpr char kTurnReplicaSum[] = "turn_replica";
inline constexpr char kTurnBatchSum[] = "turn_batch";
inline constexpr char kTurnWeightsSum[] = "turn_weights";
inline constexpr const char* kTurnSums[] = {kTurnReplicaSum, kTurnBatchSum,
                                            kTurnWeightsSum};

// Of a job with sequence_losses: an element for each sequence of a step, over
// its tokens.
inline constexpr char kSequenceLossesSum[] = "sequence_losses";
inline constexpr char kSequenceTokensSum[] = "sequence_tokens";

// Those of mixtures of experts (proto/plan/ops/router_loss.cc, capacity.cc).
// Of each layer, choices by expert; the others of all layers together.
inline constexpr char kExpertTokensSum[] = "expert_tokens";
inline constexpr char kRouterEntropySum[] = "router_entropy";  // over tokens
inline constexpr char kRouterTokensSum[] = "router_tokens";    // by each layer
// Over tokens, before they are multiplied by their coefficients.
inline constexpr char kRouterBalanceSum[] = "router_balance";
inline constexpr char kRouterZSum[] = "router_z";
inline constexpr char kDroppedChoicesSum[] = "dropped_choices";

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SUM_NAMES_H_
