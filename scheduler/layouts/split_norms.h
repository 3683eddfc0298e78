// Norms of rows whose columns lie over ranks.
#ifndef TROUPE_SCHEDULER_LAYOUTS_SPLIT_NORMS_H_
#define TROUPE_SCHEDULER_LAYOUTS_SPLIT_NORMS_H_

#include "proto/unit.pb.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

// A LayoutRow.rewrite. A NORM of what the axis cuts by columns becomes
//
//   ADD         where it has a residual
//   ROW_SUMS    of the rank's columns
//   EXCHANGE    their sums over the ranks; backward, those of their gradients
//   SPLIT_NORM  of the columns, by the sums of all
void SplitNorms(const AxisSpan& axis, UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_SPLIT_NORMS_H_
