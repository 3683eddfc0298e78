// How much slower than at its calibration a machine is now, from what its
// workers read of it. A prediction holds for the machine as it was calibrated,
// so a comparison of a time with one needs this first.
//
// What a probe takes longer than it did then, the processor is slower (clock,
// throttling, a neighbour on the same core). Time that the hypervisor keeps is
// lost. Other programs take from the workers what the cores that these do not
// want cannot give; workers that are idle now would at least share the cores
// with them, thread by thread:
//
//   there  = 1 - stolen
//   got    = (there - others) / (there * wanted), 1 at most
//   slower = probe now / probe then / (there * got) - 1
//
// What others do to the memory's bandwidth is not seen.
#ifndef TROUPE_PROTO_PLAN_MACHINE_PACE_H_
#define TROUPE_PROTO_PLAN_MACHINE_PACE_H_

#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "proto/cluster.pb.h"

namespace troupe {

// The slowest of the machines that these workers run on. Workers of one host
// are not each other's "others". Absent where none says anything of its
// machine.
absl::optional<MachinePace> PaceOf(
    const std::vector<const WorkerDescription*>& workers);

// Whether it is far enough from the calibration, 5 %, for a line to be longer.
bool IsWorthSaying(const MachinePace& pace);

// "12 % slower than at calibration (8 % stolen, others use 3 %)", "as fast as
// at calibration", "7 % faster than at calibration". Parts below half a percent
// are left out.
std::string PaceText(const MachinePace& pace);
// For a line that has no room: "12 % slower (8 % stolen, others use 3 %)".
std::string ShortPaceText(const MachinePace& pace);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MACHINE_PACE_H_
