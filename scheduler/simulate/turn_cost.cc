// The costs of what moves between one replica and its servers, where each step
// is one replica's.
#include <algorithm>

#include "proto/plan/groups.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/trained.h"
#include "scheduler/simulate/cost_model.h"

namespace troupe {

int64_t TurnBytesSent(const Plan& plan, int rank,
                      const Instruction& instruction) {
  const bool delivers = instruction.kind() == Instruction::DELIVER;
  if (!delivers && instruction.kind() != Instruction::ADMIT) return 0;
  const TrainingSpec& training = plan.job().training();
  int64_t bytes = 0;
  for (const Placement& placement : RoleOf(plan, rank).placements()) {
    bytes += delivers ? TrainedElements(plan.units(placement.unit())) *
                            BytesOfElement(GradientType(training))
                      : ServedSlice(plan, placement, rank).size() *
                            BytesOfElement(ComputeType(training));
  }
  return bytes;
}

// A replica has all of its servers, one after the other; a server one replica,
// which pulls and then pushes: one of another host, if there is any.
Cost CostModel::TurnCost(int rank, const Instruction& instruction) const {
  const bool serves = instruction.kind() == Instruction::ADMIT;
  const bool pulls = instruction.kind() != Instruction::DELIVER;
  const bool pushes = instruction.kind() != Instruction::CLAIM;
  const TrainingSpec& training = plan_.job().training();
  const auto pulled =
      static_cast<double>(BytesOfElement(ComputeType(training)));
  const auto pushed =
      static_cast<double>(BytesOfElement(GradientType(training)));
  const int group = instruction.group();
  const std::vector<int> ranks =
      MembersOf(plan_.mesh(), plan_.groups(group), rank);
  const Group::Carrier& carrier =
      CarrierOf(plan_.groups(group), numbers_[group][rank]);
  const Machine& machine = At(rank);
  const LinkRate network = Times(machine.network, machine.communication_share);
  const LinkRate local =
      Times(LocalLink(rank, carrier), machine.communication_share);
  const bool replica_is_far =
      std::any_of(ranks.begin(), ranks.end(), [&](int other) {
        return !IsServer(plan_, other) && host_of_[other] != host_of_[rank];
      });
  Traffic traffic;
  const auto add = [&](double elements, bool far) {
    const double in = serves ? pushed : pulled;
    const double out = serves ? pulled : pushed;
    const double bytes_in = (serves ? pushes : pulls) ? elements * in : 0;
    const double bytes_out = (serves ? pulls : pushes) ? elements * out : 0;
    const LinkRate& link = far ? network : local;
    traffic.bytes[far ? NETWORK_IN : LOCAL_IN] += bytes_in;
    traffic.bytes[far ? NETWORK_OUT : LOCAL_OUT] += bytes_out;
    traffic.moving += (bytes_in + bytes_out) / link.bytes_per_second();
    traffic.latency += 1e-6 * link.latency_us();
  };
  for (const Placement& placement : RoleOf(plan_, rank).placements()) {
    if (serves) {
      add(static_cast<double>(ServedSlice(plan_, placement, rank).size()),
          replica_is_far);
      continue;
    }
    const std::vector<ServedMember> members =
        ServedMembers(plan_, placement, rank);
    for (size_t m = 0; m < members.size(); ++m) {
      if (!members[m].is_server) continue;
      add(static_cast<double>(members[m].slice.size()),
          host_of_[ranks[m]] != host_of_[rank]);
    }
  }
  return TrafficCost(traffic, network, local);
}

}  // namespace troupe
