#include "scheduler/planner/shares.h"

#include <algorithm>
#include <string>

#include "proto/plan/sharing.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {
namespace {

using Shares = ParallelismSpec;

bool CutsSamples(const RowAxis& axis) {
  return std::any_of(
      axis.rules.begin(), axis.rules.end(),
      [](const DimRule& rule) { return rule.kind == Dim::BATCH; });
}

// With a row that is tried.
std::vector<std::string> TriedFields() {
  std::vector<std::string> fields;
  for (const RankField& field : FactorFields()) {
    const std::vector<const LayoutRow*> rows = RowsOf(field.name);
    const bool tried =
        std::any_of(rows.begin(), rows.end(),
                    [](const LayoutRow* row) { return row->tries != nullptr; });
    if (tried) fields.push_back(field.name);
  }
  return fields;
}

// Each way in which `ranks` ranks of a field may share units.
std::vector<Shares> WithRanks(const Shares& shares, const std::string& field,
                              int ranks) {
  if (ranks == 1) return {shares};
  std::vector<Shares> ways;
  for (const LayoutRow* const row : RowsOf(field)) {
    if (row->tries == nullptr) continue;
    Shares way = shares;
    SetRanks(field, ranks, way);
    if (!row->implied && !row->method.empty()) {
      SetField(MethodNameOf(*row), std::string(row->method), way);
    }
    row->tries(way, ways);
  }
  return ways;
}

// Deals `left` ranks out to the first `count` of the fields, the last first.
void ShareOut(const std::vector<std::string>& fields, size_t count, int left,
              const Shares& shares, std::vector<Shares>& all) {
  if (count == 0) {
    if (left == 1) all.push_back(shares);
    return;
  }
  for (const int ranks : DivisorsOf(left)) {
    if (count == 1 && ranks != left) continue;
    for (const Shares& way : WithRanks(shares, fields[count - 1], ranks)) {
      ShareOut(fields, count - 1, left / ranks, way, all);
    }
  }
}

// Each with ranks of data that share something, where the model has that.
std::vector<Shares> WithFieldsOfData(const std::vector<Shares>& without,
                                     const ModelSpec& model) {
  std::vector<Shares> all;
  for (const Shares& shares : without) {
    all.push_back(shares);
    for (const RankField& field : RankFields()) {
      if (!field.of_data) continue;
      const LayoutRow& row = RowOf(shares, field.name);
      if (row.tries_of_data == nullptr) continue;
      row.tries_of_data(shares, model, all);
    }
  }
  return all;
}

}  // namespace

std::vector<ParallelismSpec> SharesOf(int ranks, const ModelSpec& model) {
  const std::vector<std::string> fields = TriedFields();
  std::vector<Shares> all;
  for (int data = ranks; data >= 1; --data) {
    if (ranks % data != 0) continue;
    Shares shares;
    shares.set_data(data);
    ShareOut(fields, fields.size(), ranks / data, shares, all);
  }
  return WithFieldsOfData(all, model);
}

std::vector<ParallelismSpec> SharesWithParts(
    const ParallelismSpec& shares, const std::vector<StrategySpec>& parts) {
  std::vector<const LayoutRow*> of_factors;
  for (const RankField& field : FactorFields()) {
    if (RanksOf(shares, field.name) < 2) continue;
    of_factors.push_back(&RowOf(shares, field.name));
  }
  std::vector<Shares> all;
  if (of_factors.size() != 1) return all;
  const LayoutRow& row = *of_factors.front();
  for (const std::string& other : row.tried_beside) {
    Shares part_shares;
    SetRanks(other, RanksOf(shares, std::string(row.field)), part_shares);
    for (const StrategySpec& part : parts) {
      all.push_back(shares);
      StrategySpec& strategy = *all.back().add_strategies() = part;
      CopySharing(part_shares, strategy);
    }
  }
  return all;
}

bool DividesSamples(const ParallelismSpec& shares, int micro_batch_size) {
  for (const StrategySpec& strategy : shares.strategies()) {
    Shares of_strategy;
    CopySharing(strategy, of_strategy);
    int ranks = 1;
    for (const SharedAxis& axis : SharedAxes(of_strategy)) {
      if (CutsSamples(*axis.row)) ranks *= axis.size;
    }
    if (micro_batch_size % ranks != 0) return false;
  }
  return true;
}

ShareComplexity ComplexityOf(const ParallelismSpec& shares) {
  ShareComplexity complexity = {.last = false,
                                .fields = shares.data() > 1 ? 1 : 0};
  for (const RankField& field : FactorFields()) {
    if (RanksOf(shares, field.name) < 2) continue;
    ++complexity.fields;
    complexity.last = complexity.last || RowOf(shares, field.name).tried_last;
  }
  if (!shares.strategies().empty()) ++complexity.fields;
  return complexity;
}

}  // namespace troupe
