#include "proto/plan/rank_classes.h"

#include <algorithm>
#include <set>

#include "proto/base/check.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

// Numbers values in the order in which they come.
class Numbering {
 public:
  int Of(const std::vector<int>& value) {
    return numbers_.try_emplace(value, static_cast<int>(numbers_.size()))
        .first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::map<std::vector<int>, int> numbers_;
};

// Tells ranks apart until nothing changes.
class Refinement {
 public:
  Refinement(const Plan& plan, const RankTraits& traits)
      : plan_(plan),
        traits_(traits),
        ranks_(MeshSize(plan.mesh())),
        peers_(plan.roles_size()) {
    for (int i = 0; i < plan.roles_size(); ++i) {
      for (const Program& program : plan.roles(i).programs()) {
        for (const Instruction& instruction : program.instructions()) {
          if (instruction.has_peer()) peers_[i].insert(instruction.peer());
        }
      }
    }
    for (const Group& group : plan.groups()) {
      numbers_.push_back(GroupNumbers(plan.mesh(), group));
    }
    roles_ = RoleIndices(plan);
    Numbering numbering;
    for (int r = 0; r < ranks_; ++r) {
      std::vector<int> look = {roles_[r]};
      if (!traits.ranks.empty()) look.push_back(traits.ranks[r]);
      class_of_.push_back(numbering.Of(look));
    }
    classes_ = numbering.size();
  }

  std::vector<int> ToTheEnd() {
    while (Refine()) {
    }
    return std::move(class_of_);
  }

 private:
  bool Refine() {
    Numbering companies;
    const std::vector<std::vector<int>> in_groups = CompanyInGroups(companies);
    const std::vector<int> sharing = CompanyThatShares(companies);
    Numbering numbering;
    std::vector<int> next(ranks_);
    for (int r = 0; r < ranks_; ++r) {
      std::vector<int> look = {class_of_[r]};
      for (int g = 0; g < plan_.groups_size(); ++g) {
        const int number = numbers_[g][r];
        if (number < 0) continue;
        look.push_back(in_groups[g][number]);
        if (!traits_.groups.empty()) look.push_back(traits_.groups[g][number]);
      }
      for (const int place : peers_[roles_[r]]) {
        look.push_back(class_of_[PeerRank(plan_.mesh(), r, place)]);
      }
      if (!traits_.shares.empty()) {
        for (const int what : traits_.shares[r]) look.push_back(sharing[what]);
      }
      next[r] = numbering.Of(look);
    }
    const bool changed = numbering.size() > classes_;
    classes_ = numbering.size();
    class_of_ = std::move(next);
    return changed;
  }

  // By group and its number: which classes are in it.
  std::vector<std::vector<int>> CompanyInGroups(Numbering& companies) const {
    std::vector<std::vector<int>> result;
    for (int g = 0; g < plan_.groups_size(); ++g) {
      std::vector<std::set<int>> classes(
          GroupCount(plan_.mesh(), plan_.groups(g)));
      for (int r = 0; r < ranks_; ++r) {
        if (numbers_[g][r] >= 0) classes[numbers_[g][r]].insert(class_of_[r]);
      }
      std::vector<int>& of_group = result.emplace_back();
      for (const std::set<int>& of : classes) {
        of_group.push_back(companies.Of({of.begin(), of.end()}));
      }
    }
    return result;
  }

  // Of each that is shared: by which classes, and how many ranks of each.
  std::vector<int> CompanyThatShares(Numbering& companies) const {
    std::vector<std::vector<int>> classes;
    for (size_t r = 0; r < traits_.shares.size(); ++r) {
      for (const int what : traits_.shares[r]) {
        classes.resize(std::max<size_t>(classes.size(), what + 1));
        classes[what].push_back(class_of_[r]);
      }
    }
    std::vector<int> result;
    for (std::vector<int>& of : classes) {
      std::sort(of.begin(), of.end());
      result.push_back(companies.Of(of));
    }
    return result;
  }

  const Plan& plan_;
  const RankTraits& traits_;
  const int ranks_;
  std::vector<std::set<int>> peers_;       // by role: places on the pipeline
  std::vector<int> roles_;                 // by rank
  std::vector<std::vector<int>> numbers_;  // by group and rank
  std::vector<int> class_of_;
  size_t classes_ = 0;
};

}  // namespace

RankClasses::RankClasses(const Plan& plan, const RankTraits& traits)
    : plan_(plan), class_of_(Refinement(plan, traits).ToTheEnd()) {
  const int ranks = static_cast<int>(class_of_.size());
  for (int r = 0; r < ranks; ++r) {
    // They are numbered as their first ranks come.
    if (class_of_[r] == static_cast<int>(first_ranks_.size())) {
      first_ranks_.push_back(r);
    }
  }
  for (int g = 0; g < plan.groups_size(); ++g) {
    const std::vector<int> numbers = GroupNumbers(plan.mesh(), plan.groups(g));
    std::map<int, std::set<int>> members;  // by number, of groups with a first
    for (const int first : first_ranks_) {
      if (numbers[first] >= 0) members[numbers[first]];
    }
    for (int r = 0; r < ranks; ++r) {
      const auto of = members.find(numbers[r]);
      if (of != members.end()) of->second.insert(FirstLike(r));
    }
    for (const int first : first_ranks_) {
      std::vector<int>& of_first = members_[{first, g}];
      const auto of = members.find(numbers[first]);
      if (of == members.end()) continue;
      of_first.assign(of->second.begin(), of->second.end());
    }
  }
}

int RankClasses::PeerOf(int first_rank, const Instruction& transfer) const {
  CHECK(transfer.has_peer());
  return FirstLike(PeerRank(plan_.mesh(), first_rank, transfer.peer()));
}

}  // namespace troupe
