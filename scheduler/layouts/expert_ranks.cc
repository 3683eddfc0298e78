#include "scheduler/layouts/expert_ranks.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace troupe {
namespace {

// Also of jobs that nobody has checked yet.
int AtLeastOne(int ranks) { return std::max(ranks, 1); }

// Those that may be taken besides ranks of data, in the order in which they
// are.
std::vector<ExpertRanks> Choices(const ParallelismSpec& parallelism) {
  const bool has_context = parallelism.context() > 1;
  const bool has_tensor = parallelism.tensor() > 1;
  const bool said = parallelism.has_expert_tensor();
  const bool whole = said && parallelism.expert_tensor() == 1;
  std::vector<ExpertRanks> choices;
  for (const bool tensor : {false, true}) {
    if (tensor ? !has_tensor || !parallelism.sequence_parallel() ||
                     (said && !whole)
               : has_tensor && whole) {
      continue;
    }
    for (const bool context : {false, true}) {
      if (context && !has_context) continue;
      choices.push_back({.context = context, .tensor = tensor});
    }
  }
  return choices;
}

int TakenBesides(const ExpertRanks& choice,
                 const ParallelismSpec& parallelism) {
  return (choice.context ? parallelism.context() : 1) *
         (choice.tensor ? parallelism.tensor() : 1);
}

}  // namespace

ExpertRanks ExpertRanksOf(const ParallelismSpec& parallelism) {
  const int ranks = AtLeastOne(parallelism.expert());
  const int data = AtLeastOne(parallelism.data());
  if (ranks == 1) return {};
  for (ExpertRanks choice : Choices(parallelism)) {
    const int besides = TakenBesides(choice, parallelism);
    if (ranks % besides != 0) continue;
    choice.data = ranks / besides;
    if (data % choice.data == 0) return choice;
  }
  return {.data = std::gcd(ranks, data), .fits = false};
}

std::vector<int> ExpertSizes(const ParallelismSpec& parallelism) {
  const int data = AtLeastOne(parallelism.data());
  std::set<int> sizes;
  for (const ExpertRanks& choice : Choices(parallelism)) {
    const int besides = TakenBesides(choice, parallelism);
    for (int of_data = 1; of_data <= data; ++of_data) {
      if (data % of_data == 0) sizes.insert(of_data * besides);
    }
  }
  sizes.erase(1);
  return {sizes.begin(), sizes.end()};
}

}  // namespace troupe
