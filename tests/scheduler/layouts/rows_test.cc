// What a row of the table of layouts promises of itself, and that nobody else
// knows it by name: a method, a field or an axis of a row stands in its own
// file only, so that another row is one more file.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/sharing.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/resolve_rows.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

// Words of which each belongs to a row, as they stand in sources.
std::set<std::string> NamesOfRows() {
  std::set<std::string> names;
  for (const LayoutRow& row : Layouts()) {
    if (!row.method.empty()) names.insert(absl::StrCat("\"", row.method, "\""));
    for (const std::string& field : row.fields) names.insert(field);
    if (!row.method.empty()) names.insert(MethodNameOf(row));
    for (const RowAxis& axis : row.axes) {
      if (axis.name == row.field) continue;
      names.insert(absl::StrCat("\"", axis.name, "\""));
    }
  }
  return names;
}

// A comment may name what it likes.
std::string WithoutComment(const std::string& line) {
  return line.substr(0, line.find("//"));
}

TEST(LayoutRows, NobodyElseKnowsThemByName) {
  const std::set<std::string> names = NamesOfRows();
  EXPECT_GT(names.size(), 15u);
  int seen = 0;
  for (const SourceFile& file : ReadSourceTree()) {
    // Which ranks share experts follows from fields of several rows, and plans
    // need it without them: it says how many ranks have one micro-batch.
    const bool is_row = absl::StartsWith(file.path, "scheduler/layouts/") ||
                        file.path == "proto/plan/expert_ranks.cc";
    if (absl::StartsWith(file.path, "tests/")) continue;
    for (const std::string& line : file.lines) {
      const std::string code = WithoutComment(line);
      for (const std::string& name : names) {
        if (!absl::StrContains(code, name)) continue;
        ++seen;
        EXPECT_TRUE(is_row) << file.path << " knows " << name << ": " << line
                            << "\nmake it an attribute of LayoutRow, or a rule "
                               "of what the row's axes cut";
      }
    }
  }
  EXPECT_GT(seen, 20);
}

TEST(LayoutRows, StandTogetherByFieldAndAreTold) {
  std::set<std::pair<std::string, std::string>> told;
  std::vector<std::string> fields;
  for (const LayoutRow& row : Layouts()) {
    const std::string field(row.field);
    EXPECT_TRUE(IsRankField(field)) << field;
    EXPECT_TRUE(told.insert({field, std::string(row.method)}).second);
    if (fields.empty() || fields.back() != field) fields.push_back(field);
    EXPECT_FALSE(row.axes.empty());
    EXPECT_EQ(row.method.empty(), RowsOf(field).size() == 1) << field;
  }
  EXPECT_EQ(fields.size(), RankFields().size());
  EXPECT_EQ(std::set<std::string>(fields.begin(), fields.end()).size(),
            fields.size());
}

// The rules of an axis of a row that takes so many ranks: what it says of
// itself holds when it is asked.
TEST(LayoutRows, HaveAxesOfAllTheirRanks) {
  int checked = 0;
  for (const LayoutRow& row : Layouts()) {
    for (int ranks = 2; ranks <= 64; ++ranks) {
      const std::string field(row.field);
      ParallelismSpec with;
      with.set_data(ranks);  // some fields' ranks are of these
      SetRanks(field, ranks, with);
      if (!row.method.empty()) {
        SetField(MethodNameOf(row), std::string(row.method), with);
      }
      std::vector<ParallelismSpec> ways = {with};
      if (row.tries != nullptr) row.tries(with, ways);
      for (ParallelismSpec& way : ways) {
        if (!ResolveRows(way).ok()) continue;
        ++checked;
        int product = 1;
        for (const SharedAxis& axis : AxesOfRow(row, way)) {
          product *= axis.size;
          EXPECT_EQ(axis.field.ValueFor(axis.size), axis.field.value)
              << axis.name();
        }
        EXPECT_EQ(product, ranks) << way.ShortDebugString();
        EXPECT_EQ(&RowOf(way, row.field), &row);
      }
      if (row.fewer == nullptr) continue;
      const std::vector<int> fewer = row.fewer(ranks);
      EXPECT_TRUE(std::is_sorted(fewer.begin(), fewer.end()));
      EXPECT_EQ(fewer.front(), 1);
      EXPECT_EQ(fewer.back(), ranks);
    }
  }
  EXPECT_GT(checked, 400);
}

// All that is tried can be, and names the row's own fields only.
TEST(LayoutRows, TryWhatResolves) {
  for (const LayoutRow& row : Layouts()) {
    if (row.tries == nullptr) continue;
    int tried = 0;
    for (int ranks = 2; ranks <= 64; ++ranks) {
      ParallelismSpec with;
      SetRanks(std::string(row.field), ranks, with);
      if (!row.method.empty()) {
        SetField(MethodNameOf(row), std::string(row.method), with);
      }
      std::vector<ParallelismSpec> ways;
      row.tries(with, ways);
      for (ParallelismSpec& way : ways) {
        ++tried;
        EXPECT_TRUE(ResolveRows(way).ok()) << way.ShortDebugString();
      }
    }
    EXPECT_GT(tried, 1) << row.method;
  }
}

}  // namespace
}  // namespace troupe
