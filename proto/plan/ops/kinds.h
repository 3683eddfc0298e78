// The kinds of ops: a file each. Their operands are in its first lines.
#ifndef TROUPE_PROTO_PLAN_OPS_KINDS_H_
#define TROUPE_PROTO_PLAN_OPS_KINDS_H_

#include "proto/plan/ops/op_rules.h"

namespace troupe {

OpRules AddRules(const OpView& op);
OpRules AttentionRules(const OpView& op);
OpRules CrossEntropyRules(const OpView& op);
OpRules DropoutRules(const OpView& op);
OpRules EmbedRules(const OpView& op);
OpRules GeluRules(const OpView& op);
OpRules LinearRules(const OpView& op);
OpRules NormRules(const OpView& op);
OpRules RopeRules(const OpView& op);
OpRules SwiGluRules(const OpView& op);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPS_KINDS_H_
