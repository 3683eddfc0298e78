// What a row of the table of layouts promises of itself. And that the rows of
// no table are known elsewhere by name: methods, fields and axes of layouts,
// pipeline schedules and their fields, rows of collectives and ways to
// recompute stand in the files of their table only, so that another row is one
// more file.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "proto/plan/sharing.h"
#include "scheduler/collectives/collectives.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/resolve_rows.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/tiers/recompute.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", name, "\"");
}

// Words of which each belongs to a row, as they stand in sources.
using Names = std::set<std::string>;

// Of fields of data also the field itself: what such ranks share is said by the
// row, and of the others, which a strategy may have, only the path.
void InsertFieldNames(Names& names) {
  for (const RankField& field : RankFields()) {
    names.insert(absl::StrCat("\"", field.Path()));
    names.insert(absl::StrCat("parallelism.", field.name, "()"));
    names.insert(absl::StrCat("parallelism().", field.name, "()"));
    if (field.of_data) names.insert(absl::StrCat("set_", field.name, "("));
  }
}

Names NamesOfLayouts() {
  Names names;
  InsertFieldNames(names);
  for (const LayoutRow& row : Layouts()) {
    if (!row.method.empty()) names.insert(Quoted(row.method));
    for (const std::string& field : row.fields) names.insert(field);
    if (!row.method.empty()) names.insert(MethodNameOf(row));
    for (const RowAxis& axis : row.axes) {
      if (axis.name != row.field) names.insert(Quoted(axis.name));
    }
  }
  return names;
}

Names NamesOfPipelines() {
  Names names;
  for (const Pipeline& schedule : Pipelines()) {
    names.insert(Quoted(schedule.name));
    names.insert(schedule.fields.begin(), schedule.fields.end());
  }
  return names;
}

Names NamesOfCollectives() {
  Names names;
  for (const CollectiveRow& row : CollectiveRows()) {
    names.insert(Quoted(row.name));
  }
  return names;
}

// "none" is a word of others, too; "units" and "auto" are constants.
Names NamesOfRecomputeModes() {
  Names names;
  for (const std::string& mode : LeanerRecomputeModes(kRecomputeNone)) {
    names.insert(Quoted(mode));
  }
  return names;
}

struct Table {
  std::string folder;  // of its rows
  Names names;
  Names others = {};  // files that may know some, each for a reason
  int seen = 0;       // at least so often, or the test sees nothing
};

std::vector<Table> Tables() {
  return {
      {.folder = "scheduler/layouts/",
       .names = NamesOfLayouts(),
       // How texts are cut is said by `troupe generate --tensor`, not by a job.
       .others = {"scheduler/cluster/choose_writers.cc"},
       .seen = 20},
      {.folder = "scheduler/pipelines/",
       .names = NamesOfPipelines(),
       .seen = 10},
      {.folder = "scheduler/collectives/",
       .names = NamesOfCollectives(),
       // Plans say which groups have the flat one, and why.
       .others = {"proto/plan/ways.h"},
       .seen = 2},
      {.folder = "scheduler/tiers/",
       .names = NamesOfRecomputeModes(),
       .seen = 2},
  };
}

// A comment may name what it likes.
std::string WithoutComment(const std::string& line) {
  return line.substr(0, line.find("//"));
}

TEST(Rows, NobodyElseKnowsThemByName) {
  const std::vector<SourceFile> tree = ReadSourceTree();
  for (const Table& table : Tables()) {
    int seen = 0;
    Names exempt = table.others;
    for (const SourceFile& file : tree) {
      if (absl::StartsWith(file.path, "tests/")) continue;
      const bool may = absl::StartsWith(file.path, table.folder) ||
                       table.others.count(file.path) > 0;
      for (const std::string& line : file.lines) {
        const std::string code = WithoutComment(line);
        for (const std::string& name : table.names) {
          if (!absl::StrContains(code, name)) continue;
          ++seen;
          exempt.erase(file.path);
          EXPECT_TRUE(may) << file.path << " knows " << name << ": " << line
                           << "\nmake it an attribute of the row in "
                           << table.folder;
        }
      }
    }
    EXPECT_GE(seen, table.seen) << table.folder;
    EXPECT_TRUE(exempt.empty()) << *exempt.begin() << " needs no exemption";
  }
}

bool IsOfData(const std::string& name) {
  const std::vector<RankField>& all = RankFields();
  return std::any_of(all.begin(), all.end(), [&name](const RankField& field) {
    return field.name == name && field.of_data;
  });
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
    if (IsOfData(field)) {
      ASSERT_EQ(row.axes.size(), 1u) << field;
      EXPECT_EQ(row.axes[0].name, field) << "plans find it in the mesh";
    }
    EXPECT_EQ(row.method.empty(), RowsOf(field).size() == 1) << field;
  }
  EXPECT_EQ(fields.size(), RankFields().size());
  EXPECT_EQ(std::set<std::string>(fields.begin(), fields.end()).size(),
            fields.size());
}

// The rules of an axis of a row that takes a number of ranks: what it says of
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
