// Groups over levels, and their communicators, for tests of
// worker/collective/levels.h.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_LEVEL_GROUPS_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_LEVEL_GROUPS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plan.pb.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// Backends of the flat communicator and of each level, the last of all others.
struct Backends {
  std::string flat;
  std::vector<std::string> levels;
};

// All exchanges over levels of these sizes, the first one's members side by
// side.
Group GroupOver(const std::vector<int>& sizes, const Backends& backends,
                int pieces = 1);
// As a row of scheduler/collectives has it where each rank has a host to
// itself.
Group GroupByRow(const std::string& row, int ranks, const Backends& backends);
std::vector<int> SizesFor(int ranks);

// Over levels of SizesFor.
absl::StatusOr<std::unique_ptr<Communicator>> CreateOver(
    const Backends& backends, const CommunicatorSeat& seat, int pieces = 1);
absl::StatusOr<std::unique_ptr<Communicator>> CreateInOneProcess(
    const CommunicatorSeat& seat);
absl::StatusOr<std::unique_ptr<Communicator>> CreateAcrossHosts(
    const CommunicatorSeat& seat);
// Of which small buffers have too few elements.
inline constexpr int kPieces = 5;
absl::StatusOr<std::unique_ptr<Communicator>> CreateInPieces(
    const CommunicatorSeat& seat);
absl::StatusOr<std::unique_ptr<Communicator>> CreateAcrossHostsInPieces(
    const CommunicatorSeat& seat);

// Sums, and what is broadcast; all else is flat.
absl::StatusOr<std::unique_ptr<Communicator>> CreateUpATree(
    const CommunicatorSeat& seat);
absl::StatusOr<std::unique_ptr<Communicator>> CreateUpATreeAcrossHosts(
    const CommunicatorSeat& seat);
// Over levels of two, of sizes that are powers of two.
absl::StatusOr<std::unique_ptr<Communicator>> CreateByHalves(
    const CommunicatorSeat& seat);

using Create = absl::StatusOr<std::unique_ptr<Communicator>> (*)(
    const CommunicatorSeat& seat);
RanksOptions Over(Create create, int ranks);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_LEVEL_GROUPS_H_
