#include "worker/metrics/metrics_row.h"

#include <google/protobuf/descriptor.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/metrics/sample_row.h"
#include "worker/metrics/table_format.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;

// All numbers of a message by their names, as the Python client gives them.
void AddNames(const google::protobuf::Descriptor& type,
              const std::string& prefix, std::set<std::string>& names) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.is_repeated()) continue;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddNames(*field.message_type(), prefix + field.name() + ".", names);
    } else if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING &&
               field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
      names.insert(prefix + field.name());
    }
  }
}

std::set<std::string> ColumnNames() {
  std::set<std::string> names;
  for (const MetricsColumn& column : MetricsColumns()) {
    EXPECT_TRUE(names.insert(std::string(column.name)).second) << column.name;
  }
  return names;
}

// But for what the scheduler adds (machine).
TEST(MetricsColumns, AreTheNumbersOfAStep) {
  std::set<std::string> expected = {"unix_ms", "attempt"};
  AddNames(*StepRecord::descriptor(), "", expected);
  for (auto it = expected.begin(); it != expected.end();) {
    it = absl::StartsWith(*it, "machine.") ? expected.erase(it) : std::next(it);
  }
  for (const char* tier : {"HOST", "NVME"}) {
    AddNames(*TierTraffic::descriptor(), absl::StrCat("tiers.", tier, "."),
             expected);
  }
  EXPECT_EQ(ColumnNames(), expected);
}

// docs/metrics.md: every column has its row, every row its column.
TEST(MetricsColumns, AreTheOnesOfTheReference) {
  std::ifstream in("docs/metrics.md");
  ASSERT_TRUE(in.good());
  std::set<std::string> documented;
  std::string line;
  bool in_table = false;
  while (std::getline(in, line)) {
    if (absl::StartsWith(line, "| column ")) in_table = true;
    if (line.empty()) in_table = false;
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    if (!in_table || parts.size() < 3 || parts[0] != "| ") continue;
    EXPECT_TRUE(documented.insert(parts[1]).second) << line;
  }
  EXPECT_EQ(documented, ColumnNames());
}

MetricsRow FullRow() {
  MetricsRow row = SampleRow(7, 2);
  StepRecord& record = row.record;
  record.set_validation_loss(3.5);
  record.set_mfu(0.25);
  record.set_counted_tokens(1000);
  record.set_loss_scale(65536);
  record.set_skipped(true);
  record.set_skipped_steps(3);
  record.mutable_routers()->set_entropy(1.25);
  record.set_mtp_loss(0.75);
  TierTraffic& tier = *record.add_tiers();
  tier.set_tier(NVME);
  tier.set_bytes_in(int64_t{1} << 40);
  return row;
}

TEST(TableFormat, JsonHasWhatTheStepHas) {
  const nlohmann::json few =
      nlohmann::json::parse(JsonLinesFormat().line(SampleRow(7, 2)));
  EXPECT_EQ(few["step"], 7);
  EXPECT_EQ(few["attempt"], 2);
  EXPECT_EQ(few["unix_ms"], 1'767'225'600'007);
  EXPECT_EQ(few["loss"].get<double>(), 2 + 7.0 / 1024);
  EXPECT_EQ(few["learning_rate"].get<double>(), 1e-5);
  for (const char* name : {"validation_loss", "mfu", "loss_scale", "skipped",
                           "routers.entropy", "tiers.NVME.bytes_in"}) {
    EXPECT_FALSE(few.contains(name)) << name;
  }
  const nlohmann::json all =
      nlohmann::json::parse(JsonLinesFormat().line(FullRow()));
  EXPECT_EQ(all["validation_loss"], 3.5);
  EXPECT_EQ(all["skipped"], 1);
  EXPECT_EQ(all["skipped_steps"], 3);
  EXPECT_EQ(all["routers.entropy"], 1.25);
  EXPECT_EQ(all["tiers.NVME.bytes_in"], int64_t{1} << 40);
  EXPECT_FALSE(all.contains("tiers.HOST.bytes_in"));
}

TEST(TableFormat, CsvHasACellForEachColumn) {
  const std::vector<std::string> names =
      absl::StrSplit(absl::StripSuffix(CsvFormat().header(), "\n"), ',');
  ASSERT_EQ(names.size(), MetricsColumns().size());
  EXPECT_EQ(names[0], "step");
  for (const MetricsRow& row : {SampleRow(7), FullRow()}) {
    const std::vector<std::string> cells =
        absl::StrSplit(absl::StripSuffix(CsvFormat().line(row), "\n"), ',');
    ASSERT_EQ(cells.size(), names.size());
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto value = MetricsColumns()[i].value(row);
      double read = 0;
      EXPECT_EQ(value.has_value(), absl::SimpleAtod(cells[i], &read))
          << names[i];
      // To the bit.
      if (value.has_value()) EXPECT_EQ(read, *value) << names[i];
    }
  }
}

// A step that overflowed in fp16.
TEST(TableFormat, WhatJsonHasNotIsNull) {
  MetricsRow row = SampleRow(1);
  row.record.set_grad_norm(std::numeric_limits<double>::infinity());
  const nlohmann::json json =
      nlohmann::json::parse(JsonLinesFormat().line(row));
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_NE(CsvFormat().line(row).find(",inf,"), std::string::npos);
}

TEST(TableFormat, KnowsItsRows) {
  for (const TableFormat* format : {&JsonLinesFormat(), &CsvFormat()}) {
    std::string line = format->line(FullRow());
    line.pop_back();
    EXPECT_EQ(format->step(line), 7) << line;
    for (const char* other :
         {"", "loss,step", "{\"loss\":3,\"step\":7}", "-1,", "0,2", "{}",
          "{\"step\":0,\"loss\":3}", "{\"step\":9,\"los"}) {
      EXPECT_FALSE(format->step(other).has_value()) << other;
    }
  }
}

}  // namespace
}  // namespace troupe
