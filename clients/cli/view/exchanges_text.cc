#include "clients/cli/view/exchanges_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/view/format.h"
#include "proto/plan/ways.h"

namespace troupe {
namespace {

constexpr size_t kShown = 6;

std::string ExchangeLine(const ExchangePrediction& exchange) {
  std::string line = absl::StrCat(
      exchange.group(), ": ", CollectiveText(exchange.collective()), " of ",
      BytesText(exchange.bytes()), " by ", exchange.ranks(),
      " ranks: ", exchange.row(), " ", SecondsText(exchange.seconds()));
  if (exchange.levels().empty()) return line;
  const std::string at_once =
      exchange.pieces() > 1
          ? absl::StrCat(" at once on ", exchange.pieces(), " pieces")
          : "";
  return absl::StrCat(
      line, " (flat ", SecondsText(exchange.flat_seconds()), ")", at_once, ": ",
      absl::StrJoin(
          exchange.levels(), "; ",
          [](std::string* out, const ExchangePrediction::OfLevel& level) {
            absl::StrAppend(out, level.name(), " of ", level.size(), ": ",
                            BytesText(level.bytes()), ", ",
                            SecondsText(level.seconds()));
          }));
}

}  // namespace

std::string ExchangesText(const Plan& plan, absl::string_view next_line) {
  std::vector<std::string> lines;
  const auto& exchanges = plan.prediction().exchanges();
  for (const ExchangePrediction& exchange : exchanges) {
    if (lines.size() == kShown) break;
    lines.push_back(ExchangeLine(exchange));
  }
  if (lines.empty()) return "";
  const size_t left_out = exchanges.size() - lines.size();
  if (left_out > 0) {
    const bool all = exchanges.size() < kExchangesMax;
    lines.push_back(
        absl::StrCat("and ", left_out, all ? "" : " or more", " smaller ones"));
  }
  for (const Group& group : plan.groups()) {
    if (group.why_flat().empty()) continue;
    lines.push_back(absl::StrCat(group.name(), ": ", group.why_flat()));
  }
  return absl::StrCat("  exchanges        ",
                      absl::StrJoin(lines, absl::StrCat("\n", next_line)),
                      "\n");
}

}  // namespace troupe
