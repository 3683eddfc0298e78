// Cuts the units of a model over ranks, as rows of the table of layouts say,
// and puts an EXCHANGE wherever an op reads a tensor in another layout than it
// was made in. A tensor has two: its value's and its gradient's. An exchange
// turns both, the gradient's in the other direction, so that what must be done
// in backward follows from the pair:
//
//   value                gradient             forward          backward
//   PARTIAL to whole     whole to whole       all-reduce       nothing
//   whole to whole       whole from PARTIAL   nothing          all-reduce
//   SHARD to whole       SHARD from PARTIAL   all-gather       reduce-scatter
//   PARTIAL to SHARD     whole from SHARD     reduce-scatter   all-gather
//   SHARD to SHARD       SHARD from SHARD     all-to-all       all-to-all
//   whole to SHARD       whole from SHARD     slice            all-gather
//   SHARD to whole       SHARD from whole     all-gather       slice
//
// An all-to-all moves blocks that lie behind one another, so it stands between
// a PACK and an UNPACK.
#ifndef TROUPE_SCHEDULER_LAYOUTS_CUT_UNITS_H_
#define TROUPE_SCHEDULER_LAYOUTS_CUT_UNITS_H_

#include <vector>

#include "proto/plan/unit_list.h"
#include "scheduler/layouts/axis_rules.h"

namespace troupe {

// Tables are a rank's then: dims as large as it has them, parameters in parts
// by which ranks have them, bytes and work as they follow. REQUIRES CheckCuts.
void CutUnits(const std::vector<AxisRules>& axes, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_CUT_UNITS_H_
