// What units keep for their backward passes and what they make again (arXiv
// 1604.06174, 2205.05198). A row of the table says it of all units of a model;
// everything else follows from TensorSpec.again: which ops run again, where
// that lies, and what it costs (proto/plan/made_again.h).
#ifndef TROUPE_SCHEDULER_TIERS_RECOMPUTE_H_
#define TROUPE_SCHEDULER_TIERS_RECOMPUTE_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Of what backward reads, how much a unit keeps; each less than the one before.
enum class Keeps {
  kAll,
  kCostly,  // what it takes a product or attention to make; the rest is made
            // again: norms, activations, what ranks gather
  kInput,
};

struct RecomputedUnits {
  int count = 0;
  // Whether the last one's backward directly follows its forward, always: what
  // it does not keep it would make again at once, and save nothing.
  bool last_turns_at_once = false;
};

// By unit. REQUIRES a spec that is resolved. With `auto` units keep all: the
// planner, which knows the budgets, lists those that do not
// (scheduler/planner/fit_recompute.h).
std::vector<Keeps> KeptBy(const RecomputeSpec& spec,
                          const RecomputedUnits& units);

// The names of the rows. And of those that a search tries, each of which keeps
// less than the one before and computes more.
std::vector<std::string> RecomputeModes();
std::vector<std::string> TriedRecomputeModes();
// Those that keep less than this one, the one that keeps most first. Empty
// where it is none of them.
std::vector<std::string> LeanerRecomputeModes(const std::string& mode);
inline constexpr char kRecomputeNone[] = "none";  // the first of them
inline constexpr char kRecomputeList[] = "units";
inline constexpr char kRecomputeAuto[] = "auto";

// Marks the tensors of tables that are made again; units of one table that keep
// different things get tables of their own. Bytes and work follow.
void MarkAgain(const std::vector<Keeps>& keeps, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_TIERS_RECOMPUTE_H_
