#include "clients/cli/view/format.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

// Three digits that matter: "1.23", "12.3", "123".
std::string ThreeDigits(double value) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f", decimals, value);
}

std::string LocalTime(absl::string_view format, int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  return absl::FormatTime(format, absl::FromUnixMillis(unix_ms),
                          absl::LocalTimeZone());
}

}  // namespace

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = bytes;
  int unit = 0;
  while (std::abs(value) >= 1023.95 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string CountText(double count) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P", "E"};
  if (!std::isfinite(count)) return "-";
  int unit = 0;
  while (std::abs(count) >= 999.5 && unit < 6) {
    count /= 1000;
    ++unit;
  }
  if (unit == 0) {
    return absl::StrFormat("%.*f", count == std::floor(count) ? 0 : 1, count);
  }
  return absl::StrFormat("%.*f%s", std::abs(count) < 99.95 ? 1 : 0, count,
                         kUnits[unit]);
}

std::string GroupedText(int64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool starts_group = (digits.size() - i) % 3 == 0;
    if (starts_group && i > (count < 0 ? 1 : 0)) text += ',';
    text += digits[i];
  }
  return text;
}

std::string SecondsText(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-3) return ThreeDigits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return ThreeDigits(seconds * 1e3) + " ms";
  return ThreeDigits(seconds) + " s";
}

std::string ClockText(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                         whole % 60);
}

namespace {

std::string SourceText(RateSource source) {
  return absl::AsciiStrToLower(RateSource_Name(source));
}

}  // namespace

std::string BandwidthText(const LinkRate& rate) {
  const double bytes = rate.bytes_per_second();
  return bytes < 1e8 ? absl::StrFormat("%.3g MB/s", bytes * 1e-6)
                     : absl::StrFormat("%.3g GB/s", bytes * 1e-9);
}

std::string LinkText(const TopologyLink& link) {
  return absl::StrCat(BandwidthText(link.rate()),
                      absl::StrFormat(", %.3g us (", link.rate().latency_us()),
                      SourceText(link.source()),
                      link.why().empty() ? "" : absl::StrCat(": ", link.why()),
                      ")");
}

std::string ShortLinkText(const TopologyLink& link) {
  return absl::StrCat(BandwidthText(link.rate()), " ",
                      SourceText(link.source()));
}

std::string PercentText(double share) {
  if (!std::isfinite(share)) return "-";
  return absl::StrFormat("%.1f%%", share * 100);
}

std::string NumberText(double value, int decimals) {
  return absl::StrFormat("%.*f", decimals, value);
}

std::string TimeText(int64_t unix_ms) { return LocalTime("%H:%M:%S", unix_ms); }

std::string DateText(int64_t unix_ms) {
  return LocalTime("%Y-%m-%d %H:%M:%S", unix_ms);
}

std::string RangesText(const std::vector<int>& numbers) {
  std::string text;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() &&
           numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    absl::StrAppend(&text, text.empty() ? "" : ",", numbers[first]);
    if (last > first) absl::StrAppend(&text, "-", numbers[last]);
    first = last + 1;
  }
  return text;
}

int TextWidth(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) {
    return (c & 0xc0) != 0x80;  // not the rest of a UTF-8 sequence
  });
}

std::string RedText(absl::string_view text, bool terminal) {
  return terminal ? absl::StrCat("\033[1;31m", text, "\033[0m")
                  : std::string(text);
}

Table::Table(std::vector<std::string> columns) {
  for (std::string& column : columns) {
    const bool right = !column.empty() && column.back() == '>';
    if (right) column.pop_back();
    right_.push_back(right);
  }
  rows_.push_back(std::move(columns));
}

void Table::Add(std::vector<std::string> cells) {
  CHECK_EQ(cells.size(), right_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::Text(absl::string_view indent) const {
  std::vector<int> widths(right_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], TextWidth(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent);
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - TextWidth(row[i]), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", right_[i] ? pad : "", row[i],
                      right_[i] ? "" : pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace troupe
