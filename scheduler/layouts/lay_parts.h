// Which elements of a unit's flat buffer are alike in all that holds of their
// state: whether they are trained (training.freeze), and by which rule
// (optimizer.groups). Where that differs within a part of a unit, it becomes
// several. They are laid so that trained ones come first, and of these the ones
// with more optimizer states: each state is then of the first elements
// (proto/plan/trained.h, optimizer_states.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_LAY_PARTS_H_
#define TROUPE_SCHEDULER_LAYOUTS_LAY_PARTS_H_

#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Once units are cut. Parts and parameters keep their order otherwise. Moves
// nothing where nothing is frozen and there are no groups. Says of each part
// whether its rule needs whole parameters. REQUIRES a resolved spec.
void LayParts(const OptimizerSpec& optimizer, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_LAY_PARTS_H_
