// Ranks that do the same at the same time. Checker and simulator run one of
// each class in place of all: the plan of thousands of ranks has as many
// classes as its pipeline has places, where machines are alike.
//
// A class is what is left when ranks are told apart by their roles, by what
// else the caller says, and then, until nothing changes, by the classes of
// those that they meet and with which they share processors and adapters
// (partition refinement, as automata are minimised: Hopcroft 1971). So whatever
// meets in the plan meets in its classes, and nothing else does.
#ifndef TROUPE_PROTO_PLAN_RANK_CLASSES_H_
#define TROUPE_PROTO_PLAN_RANK_CLASSES_H_

#include <map>
#include <utility>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

// What tells ranks apart beside their roles: ranks that differ in a number are
// not of one class. Empty: all alike.
struct RankTraits {
  std::vector<int> ranks;                // by rank
  std::vector<std::vector<int>> groups;  // by group of the plan and its number
  // By rank: what it shares with others (processors, adapters), by numbers.
  // Empty: nobody shares anything.
  std::vector<std::vector<int>> shares;
};

class RankClasses {
 public:
  // REQUIRES CheckRoles and CheckGroup of all groups. Borrows the plan.
  explicit RankClasses(const Plan& plan, const RankTraits& traits = {});

  // Of each class the first rank, ascending: it stands for its class below.
  const std::vector<int>& first_ranks() const { return first_ranks_; }
  // The first rank of this one's class.
  int FirstLike(int rank) const { return first_ranks_[class_of_[rank]]; }

  // First ranks of those that are in the group with this first rank, ascending,
  // itself too. Empty: it is in none.
  const std::vector<int>& Members(int first_rank, int group) const {
    return members_.at({first_rank, group});
  }
  // That of the rank to which a first rank sends, or from which it receives.
  int PeerOf(int first_rank, const Instruction& transfer) const;

 private:
  const Plan& plan_;
  std::vector<int> class_of_;  // by rank
  std::vector<int> first_ranks_;
  std::map<std::pair<int, int>, std::vector<int>> members_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_RANK_CLASSES_H_
