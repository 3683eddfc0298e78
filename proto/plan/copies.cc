#include "proto/plan/copies.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "proto/plan/part_state.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

constexpr int64_t kBytesOfF32 = 4;
constexpr int64_t kLine = 64;

// The rank that is reached by half of the way around, or by the rest of it.
int Around(const Mesh& mesh, int rank, bool back) {
  const int ranks = MeshSize(mesh);
  const int pipeline = AxisSize(mesh, "pipeline");
  const int places = pipeline > 1 ? pipeline : ranks;
  const int half = places / 2;
  const int further = back ? places - half : half;
  return pipeline > 1 ? RankBefore(mesh, "pipeline", rank, pipeline - further)
                      : (rank + further) % ranks;
}

int OtherRank(const Plan& plan, int rank, bool back) {
  const int ranks = MeshSize(plan.mesh());
  CHECK_GT(ranks, 1) << "a rank alone has no other to hold its copy";
  const int group = CopiesGroup(plan);
  const bool opposite =
      group >= 0 && plan.groups(group).name() == kOppositeCopiesGroup;
  return opposite ? ranks - 1 - rank : Around(plan.mesh(), rank, back);
}

}  // namespace

bool IsCopiesGroup(const Group& group) {
  return group.name() == kCopiesGroup || group.name() == kOppositeCopiesGroup;
}

int CopiesGroup(const Plan& plan) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (IsCopiesGroup(plan.groups(g))) return g;
  }
  return -1;
}

bool KeepsCopies(const JobSpec& job, const Mesh& mesh) {
  return job.recovery().copies() > 0 && MeshSize(mesh) > 1;
}

int MirrorOf(const Plan& plan, int rank) {
  return OtherRank(plan, rank, /*back=*/false);
}

int MirroredBy(const Plan& plan, int rank) {
  return OtherRank(plan, rank, /*back=*/true);
}

bool MayMirrorOpposite(const Plan& plan) {
  const int ranks = MeshSize(plan.mesh());
  if (ranks % 2 != 0) return false;
  std::map<const Role*, int64_t> own;
  for (const Role& role : plan.roles()) own[&role] = StateCopyBytes(plan, role);
  std::map<const Role*, int64_t> gets;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t bytes = own.at(&RoleOf(plan, ranks - 1 - rank));
    const auto [it, is_first] = gets.emplace(&RoleOf(plan, rank), bytes);
    if (it->second != bytes) return false;
  }
  return true;
}

std::vector<int> RanksAlike(const Plan& plan, int rank) {
  std::vector<int> alike;
  bool first = true;
  for (const Placement& placement : RoleOf(plan, rank).placements()) {
    const Unit& unit = plan.units(placement.unit());
    for (int p = 0; p < placement.parts_size(); ++p) {
      if (unit.parts(p).elements() == 0) continue;
      const Placement::Part& part = placement.parts(p);
      if (!part.has_shared()) return {};
      const std::vector<int> members =
          MembersOf(plan.mesh(), plan.groups(part.shared()), rank);
      if (first) {
        alike = members;
        first = false;
        continue;
      }
      std::vector<int> both;
      std::set_intersection(alike.begin(), alike.end(), members.begin(),
                            members.end(), std::back_inserter(both));
      alike = std::move(both);
    }
  }
  alike.erase(std::remove(alike.begin(), alike.end(), rank), alike.end());
  return alike;
}

bool NeedsMirrors(const Plan& plan) {
  return std::any_of(
      plan.roles().begin(), plan.roles().end(), [&plan](const Role& role) {
        return RanksAlike(plan, FirstRankOf(plan.mesh(), role)).empty();
      });
}

bool MirrorsOf(const Program& keep) {
  return std::any_of(keep.instructions().begin(), keep.instructions().end(),
                     [](const Instruction& instruction) {
                       return instruction.kind() == Instruction::MIRROR;
                     });
}

bool KeepsMirrors(const Plan& plan) {
  return std::any_of(
      plan.roles().begin(), plan.roles().end(), [](const Role& role) {
        const Program* const keep = FindProgram(role, Program::KEEP);
        return keep != nullptr && MirrorsOf(*keep);
      });
}

int64_t CopyBytesOfUnit(const Plan& plan, const Role& role, int unit) {
  const int rank = FirstRankOf(plan.mesh(), role);
  const Placement& placement = *FindPlacement(role, unit);
  const int64_t bytes = (LargestTrainedAtRest(plan, placement, rank) +
                         LargestStateAtRest(plan, placement, rank)) *
                            kBytesOfF32 +
                        LargestFrozenAtRest(plan, placement, rank) *
                            BytesOfFlat(plan.units(unit), Buffer::PARAMETERS);
  return (bytes + kLine - 1) / kLine * kLine;
}

int64_t CopyOffsetOfUnit(const Plan& plan, const Role& role, int unit) {
  int64_t offset = 0;
  for (const Placement& placement : role.placements()) {
    if (placement.unit() == unit) return offset;
    offset += CopyBytesOfUnit(plan, role, placement.unit());
  }
  CHECK(false) << "unit " << unit << " is not of the role " << RoleText(role);
  return offset;
}

int64_t StateCopyBytes(const Plan& plan, const Role& role) {
  const auto own = [&plan](const Role& of) {
    int64_t bytes = 0;
    for (const Placement& placement : of.placements()) {
      bytes += CopyBytesOfUnit(plan, of, placement.unit());
    }
    return bytes;
  };
  const bool even =
      std::all_of(plan.groups().begin(), plan.groups().end(),
                  [](const Group& group) { return group.weights().empty(); });
  if (even) return own(role);
  // Ranks of a role may hold the copies of ranks that have other weights.
  int64_t largest = 0;
  for (const Role& of : plan.roles()) largest = std::max(largest, own(of));
  return largest;
}

}  // namespace troupe
