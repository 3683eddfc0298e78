#include "worker/metrics/table_format.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace troupe {
namespace {

constexpr absl::string_view kJsonBegin = "{\"step\":";

std::string NoHeader() { return ""; }

// In quotes. REQUIRES UTF-8, as all text of a message is.
std::string JsonText(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", absl::string_view(&c, 1));
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<int>(byte));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string JsonLine(const MetricsRow& row) {
  std::string line;
  for (const MetricsColumn& column : MetricsColumns()) {
    const absl::optional<double> value = column.value(row);
    if (!value.has_value()) continue;
    absl::StrAppend(
        &line, line.empty() ? "{" : ",", "\"", column.name,
        "\":", std::isfinite(*value) ? MetricsNumber(column, *value) : "null");
  }
  if (row.record.has_sample()) {
    const TextSample& sample = row.record.sample();
    const bool fails = !sample.error().empty();
    absl::StrAppend(&line, ",\"sample", fails ? "_error" : "",
                    "\":", JsonText(fails ? sample.error() : sample.text()));
  }
  absl::StrAppend(&line, "}\n");
  return line;
}

// Of "17,...": steps are from 1.
absl::optional<int64_t> StepBefore(absl::string_view text, char end) {
  int64_t step = 0;
  const bool is_row = absl::SimpleAtoi(text.substr(0, text.find(end)), &step);
  if (!is_row || step < 1) return absl::nullopt;
  return step;
}

absl::optional<int64_t> StepOfJson(absl::string_view line) {
  if (!absl::EndsWith(line, "}") || !absl::ConsumePrefix(&line, kJsonBegin)) {
    return absl::nullopt;
  }
  return StepBefore(line, ',');
}

std::string CsvHeader() {
  const auto name = [](std::string* out, const MetricsColumn& column) {
    absl::StrAppend(out, column.name);
  };
  return absl::StrCat(absl::StrJoin(MetricsColumns(), ",", name), "\n");
}

std::string CsvLine(const MetricsRow& row) {
  const auto cell = [&](std::string* out, const MetricsColumn& column) {
    const absl::optional<double> value = column.value(row);
    if (value.has_value()) out->append(MetricsNumber(column, *value));
  };
  return absl::StrCat(absl::StrJoin(MetricsColumns(), ",", cell), "\n");
}

absl::optional<int64_t> StepOfCsv(absl::string_view line) {
  return StepBefore(line, ',');
}

constexpr TableFormat kJsonLines = {"metrics.jsonl", &NoHeader, &JsonLine,
                                    &StepOfJson};
constexpr TableFormat kCsv = {"metrics.csv", &CsvHeader, &CsvLine, &StepOfCsv};

}  // namespace

const TableFormat& JsonLinesFormat() { return kJsonLines; }
const TableFormat& CsvFormat() { return kCsv; }

}  // namespace troupe
