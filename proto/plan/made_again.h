// What a unit does not keep for its backward passes, it makes again before them
// (arXiv 1604.06174): of its ops, the fewest that bring back what is missing.
// Whether a tensor is kept, TensorSpec.again says; the ops follow.
#ifndef TROUPE_PROTO_PLAN_MADE_AGAIN_H_
#define TROUPE_PROTO_PLAN_MADE_AGAIN_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/unit.pb.h"

namespace troupe {

// How an op runs again.
enum class Again {
  kNo,
  kAsForward,
  kApart,  // from what forward has left (OpRules.apart_reads), without the ops
           // before it
};

struct MadeAgain {
  std::vector<Again> ops;     // by op of the table
  std::vector<bool> tensors;  // by tensor: whether an op writes it again
};

// `rules` of the table's ops; `read` by tensor: by a backward pass.
MadeAgain WhatIsMadeAgain(const UnitTable& table,
                          const std::vector<OpRules>& rules,
                          const std::vector<bool>& read);

// By tensor, whether a backward pass reads it.
std::vector<bool> ReadByBackward(const UnitTable& table,
                                 const std::vector<OpRules>& rules);

// By tensor, whether a RETURN brings it back for the backward passes, so that
// it is not there before.
std::vector<bool> ReturnedInBackward(const UnitTable& table);

// The inputs of an op that it reads when it runs again.
std::vector<int> ReadAgain(const UnitTable& table, int op, const OpRules& rules,
                           Again again);

// Of an operand's name, in the op; or -1.
int TensorOf(const UnitTable& table, int op, absl::string_view name);

// The op that makes the tensor, or -1.
int MakerOf(const UnitTable& table, int tensor);

// Of a broadcast, the op that computes meanwhile: the product that the panel's
// goes on from; -1: none.
int ComputesMeanwhile(const UnitTable& table, int exchange);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MADE_AGAIN_H_
