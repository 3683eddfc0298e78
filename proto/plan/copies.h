// Copies of the ranks' states in the memory of workers, from which a job goes
// on when one of them is lost (docs/recovery.md). A rank copies its own state
// now and then into its host's memory (KEEP), so that all can go back to the
// end of one step; and where nobody else holds the same, or only ranks of its
// host do (copy_losses.h), it hands the copy to another rank (MIRROR), far away
// on the mesh, so that it is seldom on the same host.
#ifndef TROUPE_PROTO_PLAN_COPIES_H_
#define TROUPE_PROTO_PLAN_COPIES_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

// The group of all ranks in which copies move, over the host's memory. A plan
// names it by which rank holds a rank's copy: the one half the way around, or
// the opposite one.
inline constexpr char kCopiesGroup[] = "copies";
inline constexpr char kOppositeCopiesGroup[] = "copies of opposite ranks";
bool IsCopiesGroup(const Group& group);
// Its index; -1: the plan has none.
int CopiesGroup(const Plan& plan);

// Whether the job asks for copies and has ranks that could hold them.
bool KeepsCopies(const JobSpec& job, const Mesh& mesh);

// Which rank holds the rank's copy, and whose copy it holds beside its own.
//
// * Half the way around the pipeline, whose ranks of one place have one
// program;
//   without one, half of all ranks away. Neighbours share a host, so that this
//   is another host wherever one has no more than half of all ranks, but for
//   pipelines of an odd number of ranks on two hosts.
// * Opposite: rank r of R and R - 1 - r, and so the pipeline's ranks of one
//   place and those of one other, or of the same in the middle. Of two hosts
//   with half of the ranks each, it is the other one. R is even.
//
// The plan says which (CopiesGroup): it does not change when other workers take
// places, so that what was kept stays where it is looked for. REQUIRE several
// ranks.
int MirrorOf(const Plan& plan, int rank);
int MirroredBy(const Plan& plan, int rank);
// Whether ranks may have copies of opposite ones: there is no rank in the
// middle, and what a role's ranks get is equally large. REQUIRES every role's
// placements.
bool MayMirrorOpposite(const Plan& plan);

// The others that hold the same of the state, all of it, ascending. REQUIRES
// the rank's role.
std::vector<int> RanksAlike(const Plan& plan, int rank);

// Whether some rank's state is held by no other: then all have a MIRROR; else
// they may have one (copy_losses.h).
// REQUIRES every role's placements.
bool NeedsMirrors(const Plan& plan);

// Whether a KEEP program hands its copy on, and whether the plan's do.
bool MirrorsOf(const Program& keep);
bool KeepsMirrors(const Plan& plan);

// Of a STATE_COPY: its bytes for a unit that the role holds, f32 of trained
// parameters and moments behind one another, then frozen parameters as the
// model computes with them, in whole cache lines; where a unit's begin; and all
// of them, for any rank of the role.
int64_t CopyBytesOfUnit(const Plan& plan, const Role& role, int unit);
int64_t CopyOffsetOfUnit(const Plan& plan, const Role& role, int unit);
int64_t StateCopyBytes(const Plan& plan, const Role& role);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_COPIES_H_
