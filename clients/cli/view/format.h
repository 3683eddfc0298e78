// Numbers as people read them, the same in every command.
#ifndef TROUPE_CLIENTS_CLI_VIEW_FORMAT_H_
#define TROUPE_CLIENTS_CLI_VIEW_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"

namespace troupe {

std::string BytesText(int64_t bytes);     // "0 B", "1.2 GiB"
std::string CountText(double count);      // "950", "12.3k", "124M"
std::string GroupedText(int64_t count);   // "8,192"
std::string SecondsText(double seconds);  // "1.23 s", "45.6 ms", "780 us"
std::string ClockText(double seconds);    // "0:42", "1:02:03"
std::string BandwidthText(const LinkRate& rate);  // "1.1 GB/s"
// "1.1 GB/s, 30 us (assumed: nobody has measured it)"; short: "1.1 GB/s
// assumed".
std::string LinkText(const TopologyLink& link);
std::string ShortLinkText(const TopologyLink& link);
std::string PercentText(double share);               // 0.412 is "41.2%"
std::string NumberText(double value, int decimals);  // "nan" where it is none
// Local wall time, "12:30:05" and "2026-03-01 12:30:05"; "-" for 0.
std::string TimeText(int64_t unix_ms);
std::string DateText(int64_t unix_ms);
// {0, 1, 2, 5} is "0-2,5". REQUIRES ascending numbers.
std::string RangesText(const std::vector<int>& numbers);

// In red where it goes to a terminal.
std::string RedText(absl::string_view text, bool terminal);

// A table with aligned columns, two spaces apart. A column whose name ends in
// '>' (not shown) is aligned to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> columns);
  // REQUIRES one cell a column.
  void Add(std::vector<std::string> cells);
  // One line a row, no blanks at line ends; `indent` before each.
  std::string Text(absl::string_view indent = "") const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the first is the header
};

// Columns that `text` takes on a terminal: characters, not bytes.
int TextWidth(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_FORMAT_H_
