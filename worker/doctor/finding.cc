#include "worker/doctor/finding.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace troupe {
namespace {

const char* StateText(FindingState state) {
  switch (state) {
    case FindingState::kOk:
      return "ok";
    case FindingState::kWarn:
      return "warn";
    case FindingState::kFail:
      return "fail";
    case FindingState::kNone:
      return "none";
  }
  return "";
}

}  // namespace

std::string FindingText(const Finding& finding) {
  return absl::StrFormat("%-6s %-17s %s%s%s\n", StateText(finding.state),
                         finding.check, finding.text,
                         finding.advice.empty() ? "" : ": ", finding.advice);
}

std::string FindingsJson(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"check", finding.check},
                    {"state", StateText(finding.state)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  // Paths and host names need not be UTF-8.
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

std::string FailureText(const std::vector<Finding>& findings) {
  std::vector<std::string> failed;
  for (const Finding& finding : findings) {
    if (finding.state == FindingState::kFail) failed.push_back(finding.check);
  }
  if (failed.empty()) return "";
  return absl::StrCat(failed.size(), " of ", findings.size(), " checks ",
                      failed.size() == 1 ? "fails" : "fail", ": ",
                      absl::StrJoin(failed, ", "));
}

std::string MemoryText(int64_t bytes) {
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
  if (bytes < kKiB) return absl::StrCat(bytes, " B");
  if (bytes < kMiB) return absl::StrCat(bytes / kKiB, " KiB");
  if (bytes < kGiB) return absl::StrCat(bytes / kMiB, " MiB");
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / kGiB);
}

}  // namespace troupe
