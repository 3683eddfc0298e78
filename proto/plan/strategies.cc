#include "proto/plan/strategies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "proto/plan/sharing.h"

namespace troupe {
namespace {

struct UnitWord {
  const char* word;
  Unit::Kind kind;
};
constexpr UnitWord kUnitWords[] = {{"embedding", Unit::EMBEDDING},
                                   {"blocks", Unit::BLOCK},
                                   {"head", Unit::HEAD}};

bool Names(const std::string& name, int number, Unit::Kind kind) {
  for (const UnitWord& word : kUnitWords) {
    if (name == word.word) return kind == word.kind;
  }
  int named = -1;
  return absl::SimpleAtoi(name, &named) && named == number;
}

}  // namespace

ParallelismSpec WithStrategy(const ParallelismSpec& job,
                             const StrategySpec& strategy) {
  ParallelismSpec all = job;
  all.clear_strategies();
  CopySharing(strategy, all);
  for (const RankField& field : FactorFields()) {
    if (!HasField(all, field.name)) SetRanks(field.name, 1, all);
  }
  return all;
}

void AdoptFirstStrategy(ParallelismSpec& parallelism) {
  if (parallelism.strategies().empty() || SharesUnits(parallelism)) return;
  auto strategies = std::move(*parallelism.mutable_strategies());
  parallelism = WithStrategy(parallelism, strategies.Get(0));
  *parallelism.mutable_strategies() = std::move(strategies);
}

std::vector<int> StrategyOfUnits(
    const ParallelismSpec& parallelism, const std::vector<Unit::Kind>& units,
    const google::protobuf::RepeatedPtrField<Stage>& stages) {
  std::vector<int> of_units(units.size(), -1);
  const int count = static_cast<int>(units.size());
  for (int s = 0; s < parallelism.strategies_size(); ++s) {
    const StrategySpec& strategy = parallelism.strategies(s);
    if (strategy.has_stage() && strategy.stage() < stages.size()) {
      const Stage& stage = stages.Get(strategy.stage());
      std::fill_n(of_units.begin() + stage.unit(), stage.unit_count(), s);
    }
    for (const std::string& name : strategy.units()) {
      for (int u = 0; u < count; ++u) {
        if (Names(name, u, units[u])) of_units[u] = s;
      }
    }
  }
  return of_units;
}

std::vector<std::string> UnitWords() {
  std::vector<std::string> words;
  for (const UnitWord& word : kUnitWords) words.emplace_back(word.word);
  return words;
}

}  // namespace troupe
