#include "tests/worker/collective/level_groups.h"

#include <algorithm>
#include <numeric>

#include "scheduler/collectives/collectives.h"
#include "scheduler/collectives/steps_over.h"
#include "worker/collective/create_communicator.h"

namespace troupe {
namespace {

constexpr Collective kWithSteps[] = {ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER,
                                     ALL_TO_ALL, BROADCAST};

}  // namespace

Group GroupOver(const std::vector<int>& sizes, const Backends& backends,
                int pieces) {
  Group group;
  group.set_name("test-group");
  Group::Carrier& carrier = *group.add_carriers();
  carrier.set_backend(backends.flat);
  int stride = 1;
  for (const int size : sizes) {
    Group::Level& level = *group.add_levels();
    level.set_size(size);
    level.set_stride(stride);
    level.set_in_order(stride == 1);
    const size_t l = carrier.levels_size();
    carrier.add_levels()->add_backends(
        backends.levels[std::min(l, backends.levels.size() - 1)]);
    stride *= size;
  }
  for (const Collective collective : kWithSteps) {
    if (sizes.empty()) break;
    Group::Way& way = *group.add_ways();
    way.set_collective(collective);
    way.set_pieces(pieces);
    const auto steps = StepsOver(collective, static_cast<int>(sizes.size()));
    way.mutable_steps()->Add(steps->begin(), steps->end());
  }
  return group;
}

Group GroupByRow(const std::string& row, int ranks, const Backends& backends) {
  Group group;
  group.set_name("test-group");
  Group::Carrier& carrier = *group.add_carriers();
  carrier.set_backend(backends.flat);
  std::vector<int> hosts(ranks);
  std::iota(hosts.begin(), hosts.end(), 0);
  for (const Collective collective : kWithSteps) {
    const auto laid = LayRow(*FindCollectiveRow(row),
                             {.hosts = hosts, .collective = collective});
    if (!laid.ok() || laid->steps.empty()) continue;
    *group.mutable_levels() = {laid->levels.begin(), laid->levels.end()};
    Group::Way& way = *group.add_ways();
    way.set_collective(collective);
    *way.mutable_steps() = {laid->steps.begin(), laid->steps.end()};
  }
  for (int l = 0; l < group.levels_size(); ++l) {
    carrier.add_levels()->add_backends(backends.levels.back());
  }
  return group;
}

std::vector<int> SizesFor(int ranks) {
  if (ranks == 1) return {};
  if (ranks == 4) return {2, 2};
  if (ranks == 6) return {3, 2};
  if (ranks == 8) return {2, 2, 2};
  return {ranks};
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateOver(
    const Backends& backends, const CommunicatorSeat& seat, int pieces) {
  const auto ranks = static_cast<int>(seat.group.ranks.size());
  return CreateCommunicator(GroupOver(SizesFor(ranks), backends, pieces), 0,
                            seat);
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateInOneProcess(
    const CommunicatorSeat& seat) {
  return CreateOver({"in_process", {"in_process"}}, seat);
}
absl::StatusOr<std::unique_ptr<Communicator>> CreateAcrossHosts(
    const CommunicatorSeat& seat) {
  return CreateOver({"gloo", {"shared_memory", "gloo"}}, seat);
}
absl::StatusOr<std::unique_ptr<Communicator>> CreateInPieces(
    const CommunicatorSeat& seat) {
  return CreateOver({"in_process", {"in_process"}}, seat, kPieces);
}
absl::StatusOr<std::unique_ptr<Communicator>> CreateAcrossHostsInPieces(
    const CommunicatorSeat& seat) {
  return CreateOver({"gloo", {"shared_memory", "gloo"}}, seat, kPieces);
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateUpATree(
    const CommunicatorSeat& seat) {
  const auto ranks = static_cast<int>(seat.group.ranks.size());
  return CreateCommunicator(
      GroupByRow("tree", ranks, {"in_process", {"in_process"}}), 0, seat);
}
absl::StatusOr<std::unique_ptr<Communicator>> CreateUpATreeAcrossHosts(
    const CommunicatorSeat& seat) {
  const auto ranks = static_cast<int>(seat.group.ranks.size());
  return CreateCommunicator(GroupByRow("tree", ranks, {"gloo", {"gloo"}}), 0,
                            seat);
}
absl::StatusOr<std::unique_ptr<Communicator>> CreateByHalves(
    const CommunicatorSeat& seat) {
  const auto ranks = static_cast<int>(seat.group.ranks.size());
  return CreateCommunicator(GroupByRow("halving", ranks, {"gloo", {"gloo"}}), 0,
                            seat);
}

RanksOptions Over(Create create, int ranks) {
  const bool tree =
      create == CreateUpATree || create == CreateUpATreeAcrossHosts;
  return {.backend = "levels",
          .ranks = ranks,
          .create = create,
          .rounds_once = false,
          .reduces_over_levels = true,
          .sums_up_a_tree = tree,
          .exchange_levels = tree ? std::vector<int>() : SizesFor(ranks),
          .in_pieces =
              create == CreateInPieces || create == CreateAcrossHostsInPieces,
          .patience = 4};
}

}  // namespace troupe
