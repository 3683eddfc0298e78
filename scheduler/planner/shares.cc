#include "scheduler/planner/shares.h"

#include <algorithm>
#include <string>

#include "proto/plan/sharing.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {
namespace {

using Shares = ParallelismSpec;

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

// Each way in which so many ranks of a field may share units.
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
