// Rows on their way to the experts and back, where axes of the mesh cut these
// (experts.cc): what a rank dispatches goes to the ranks that have the experts,
// is computed there by them, and comes back.
//
//   DISPATCH          the rank's rows, sorted by expert, and so by destination
//   EXCHANGE          all-gather: the offsets of all ranks' rows
//   in each round:
//     EXCHANGE        rows to the ranks with their experts; their gates
//     REGROUP         by expert
//     GROUPED_LINEAR  and what else the experts compute
//     UNGROUP         by source again
//     EXCHANGE        back to the ranks with the tokens
//   COMBINE
//
// A round takes as many rows as its buffer has room for (parallelism.
// expert_slack times what a rank dispatches). Which ones follows from the
// offsets (proto/base/expert_rounds.h), so there are as many rounds in the
// program as the worst routing needs, and one without rows does nothing. Of the
// first round what backward reads is kept; later ones, which are rare, are made
// again.
#ifndef TROUPE_SCHEDULER_LAYOUTS_WRITE_ROUNDS_H_
#define TROUPE_SCHEDULER_LAYOUTS_WRITE_ROUNDS_H_

#include <string>
#include <vector>

#include "proto/unit.pb.h"

namespace troupe {

// Among which ranks, and how much room there is.
struct RoundsSpec {
  std::vector<std::string> axes;  // of the mesh, outermost first
  int ranks = 1;                  // along all of them
  double slack = 1;  // rows that a round has room for, over those dispatched
};

// Writes the rounds of each layer of experts into a table that all axes have
// cut. CHECKs that what is dispatched is combined.
void WriteRounds(const RoundsSpec& spec, UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_WRITE_ROUNDS_H_
