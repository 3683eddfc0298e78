// What each rank of a text's plan has of the model.
#ifndef TROUPE_PROTO_PLAN_TEXT_PARTS_H_
#define TROUPE_PROTO_PLAN_TEXT_PARTS_H_

#include <vector>

#include "proto/text_plan.pb.h"

namespace troupe {

// The units that the rank runs.
const Stage& StageOfText(const TextPlan& plan, int rank);

// Those whose weights it holds, ascending: the ones it runs, and others that
// these are tied to.
std::vector<int> UnitsOfText(const TextPlan& plan, int rank);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_TEXT_PARTS_H_
